"""Files that travel name no machine, no private path and no host that a reader cannot use."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

MACHINE_PATH = re.compile(r"(?<![\w.$}-])/(?:work|root|home/\w+|Users/\w+)/")
URL = re.compile(r"https?://(?:\[[0-9a-f:]+\])?[^\s\"'`<>)\]]*")
KNOWN_HOSTS = {
    "", "127.0.0.1", "[::1]", "[fd00::1]", "localhost", "0.0.0.0",
    "HOST", "host", "minio", "example.org",
    "json-schema.org", "www.apache.org", "kafka.apache.org", "issues.apache.org", "cwiki.apache.org",
    "keepachangelog.com", "semver.org", "www.w3.org",
}  # fmt: skip
RESERVED = re.compile(r"(^|\.)example(\.com)?$")
"""Names that are reserved for examples (RFC 2606)."""
TEXT = {".py", ".md", ".toml", ".txt", ".sh", ".json", ".jsonl", ".yaml", ".yml", ".html", ".svg", ".css", ""}


def tracked_files(repository: Path) -> list[Path]:
    """List what git tracks or would track; without git, everything in plain sight."""
    command = ["git", "-C", str(repository), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, timeout=240).stdout
    except (OSError, subprocess.CalledProcessError):
        trees = [path for path in repository.iterdir() if not path.name.startswith(".")]
        files = [
            file for tree in trees for file in (tree, *tree.rglob("*")) if "__pycache__" not in file.parts
        ]
    else:
        files = [repository / name.decode() for name in listed.split(b"\0") if name]
    return [path for path in files if path.is_file() and path.suffix in TEXT]


def found(repository: Path, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Find a pattern in every tracked text, line by line; gives the place and what matches."""
    for path in tracked_files(repository):
        text = path.read_text(encoding="utf-8")
        if not pattern.search(text):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            for match in pattern.finditer(line):
                yield f"{path.relative_to(repository)}:{number}", match[0]


def test_no_machine_paths(repository: Path) -> None:
    """No file names a path of the machine that it was written on."""
    assert list(found(repository, MACHINE_PATH)) == []


def test_only_known_hosts(repository: Path) -> None:
    """Every URL leads to a host on the short list above; a package index is never one of them."""
    strangers = [
        f"{place}: {url}"
        for place, url in found(repository, URL)
        if (host := _host(url)) not in KNOWN_HOSTS and not RESERVED.search(host)
    ]
    assert strangers == []


def _host(url: str) -> str:
    host = urlsplit(url).netloc.rpartition("@")[2]
    host = re.sub(r":[^\]]*$", "", host)
    return "" if set(host) & set("{}$%") else host
