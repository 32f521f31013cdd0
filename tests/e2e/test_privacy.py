"""No record key or value in any output; store and topic names only where they are documented."""

from __future__ import annotations

import gzip
import json
import os
import re
import tarfile
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from deploy.demo.agents import Agent

pytestmark = [pytest.mark.e2e, pytest.mark.inotify, pytest.mark.timeout(600)]
NAME = "kafka-20685-4.1.2"
STORE = "customer-names"
KEYS = re.compile(rb"(?<![0-9a-f-])a[1-9]\d{3}(?![0-9a-f-])")
"""Record keys of the recorded application, apart from pieces of hashes and UUIDs."""

VALUES = re.compile(rb"xxxx")


@pytest.fixture
def state(tmp_path: Path, repository: Path) -> Path:
    """Give a recorded state directory with real records, its store renamed so that the name can be looked for."""
    folder = tmp_path / "state"
    with tarfile.open(repository / "tests/data/snapshots" / f"{NAME}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    for task in folder.glob("*/*_*"):
        (task / "rocksdb" / "s").rename(task / "rocksdb" / STORE)
        for position in task.glob("s.position"):
            position.rename(task / f"{STORE}.position")
        checkpoint = task / ".checkpoint"
        if checkpoint.is_file():
            times = checkpoint.stat()
            checkpoint.write_text(checkpoint.read_text().replace("-s-changelog", f"-{STORE}-changelog"))
            os.utime(checkpoint, ns=(times.st_atime_ns, times.st_mtime_ns))
    return folder


@pytest.fixture
def settings(repository: Path) -> Mapping[str, str]:
    """Give what the application's operator would say."""
    scenario = json.loads((repository / "tests/data/traces" / NAME / "scenario.json").read_text())
    return {key: str(value) for key, value in scenario["settings"].items()}


def asked(url: str) -> bytes:
    """Read an answer of the agent's server."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return bytes(answer.read())


def outputs(
    state: Path, work: Path, settings: Mapping[str, str], eventually: Callable[..., object]
) -> dict[str, bytes]:
    """Run an agent on the directory; collect everything that either wrote or served."""
    agent = Agent("orders-0", state, work / "own", work / "sink", settings, on_line=lambda pod, line: None)
    try:
        agent.wait_ready()
        eventually(lambda: any(line.get("detector") == "stale-eos-checkpoint" for line in agent.lines))
        # the log line is written at once, the series follow within the second
        eventually(lambda: b"statewarden_task_findings{" in asked(f"{agent.url}/metrics"))
        metrics, page = asked(f"{agent.url}/metrics"), asked(f"{agent.url}/")
        spool = b"".join(
            path.read_bytes() for path in sorted((work / "own" / "spool").rglob("*")) if path.is_file()
        )
    finally:
        agent.stop()
    events = b"".join(
        gzip.decompress(path.read_bytes()) for path in sorted((work / "sink").rglob("*.jsonl.gz"))
    )
    log = "\n".join(json.dumps(line) for line in agent.lines).encode() + agent.errors.encode()
    return {"metrics": metrics, "page": page, "log": log, "spool": spool, "events": events}


def test_no_record_leaves_the_pod(
    state: Path, tmp_path: Path, settings: Mapping[str, str], eventually: Callable[..., object]
) -> None:
    """Keys lie in MANIFEST, SST and log files, values in SST files; none is in any output."""
    files = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert len(set(KEYS.findall(files))) > 3
    assert VALUES.search(files)
    found = outputs(state, tmp_path, settings, eventually)
    assert {name: KEYS.findall(content) for name, content in found.items()} == {name: [] for name in found}
    assert {name: VALUES.findall(content) for name, content in found.items()} == {name: [] for name in found}
    # documented: names of stores and topics are in events, logs and on the page; in metrics in an incident's text only
    said = [x for x in found["metrics"].splitlines() if not x.startswith(b"statewarden_incident_text{")]
    found["metrics"] = b"\n".join(said)
    told = {name for name, content in found.items() if STORE.encode() in content}
    assert told == {"page", "log", "spool", "events"}
