"""What is in wheel and sdist, that they are the same bytes each time, and that the wheel is enough to work with."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest

from agent.cli import catalogue
from tests.agent.cli.commands import plant
from tools import dist
from tools.build_hook import MODULE, commit_of

LARGEST_BYTES = 1_500_000
PACKAGES = ("agent", "spark_rollup")


@pytest.fixture(scope="module")
def site(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel: all that an installation puts into its site-packages."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(built[1]) as wheel:
        wheel.extractall(folder)
    return folder


def contents(folder: Path) -> set[str]:
    """List files by their path in a folder, caches left out."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def metadata(site: Path) -> Message:
    """Read the wheel's metadata."""
    return HeaderParser().parsestr(next(site.glob("*.dist-info/METADATA")).read_text("utf-8"))


def test_the_wheel_has_the_two_packages_and_the_pages_that_explain_prints(
    site: Path, repository: Path
) -> None:
    """All of their files and nothing else: no test, no tool, nothing that lies about in a checkout."""
    ours = {f"{name}/{file}" for name in PACKAGES for file in contents(repository / name)}
    pages = {f"agent/pages/runbooks/{file}" for file in contents(repository / "docs/runbooks")}
    found = {file for file in contents(site) if ".dist-info/" not in file}
    assert found == ours | pages | {
        f"agent/pages/{name}.md" for name in ("alerts", "log-lines", *catalogue.PRINTED)
    }
    assert {Path(file).suffix for file in found} == {".py", ".json", ".md", ".sh"}


def test_it_is_small(built: tuple[Path, Path]) -> None:
    """Every pod carries it, and every laptop fetches it."""
    for file in built:
        assert file.stat().st_size < LARGEST_BYTES


def test_it_is_the_same_from_another_directory_at_another_time(
    built: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other times of files, rights, zone, and a date in the environment: the same bytes, of the sdist, too."""
    source = dist.unpack(built[0], tmp_path / "elsewhere")
    for number, path in enumerate(sorted(source.rglob("*"))):
        os.utime(path, (number, number))
        path.chmod(0o700 if path.is_dir() else 0o600)
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    before = os.umask(0o077)
    try:
        again = [dist.build(source, kind, tmp_path / "again") for kind in ("sdist", "wheel")]
    finally:
        os.umask(before)
    for first, second in zip(built, again, strict=True):
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes()


def test_it_says_from_which_commit_it_is(site: Path, repository: Path) -> None:
    """The commit of the checkout, or `unknown` where there is none."""
    said = re.search(r'(?m)^COMMIT = "(.+)"$', (site / MODULE).read_text("utf-8"))
    assert said is not None
    assert said[1] == (commit_of(repository) or "unknown")


def test_the_commit_of_a_repository_is_asked_of_git(tmp_path: Path) -> None:
    """A directory that is none has none; a change that is not committed is marked."""
    assert commit_of(tmp_path) is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    (tmp_path / "file").write_text("1")
    subprocess.run([*git, "add", "file"], check=True)
    assert commit_of(tmp_path) is None  # nothing is committed
    subprocess.run([*git, "commit", "--quiet", "--message", "one"], check=True)
    commit = commit_of(tmp_path)
    assert commit is not None
    assert re.fullmatch("[0-9a-f]{40}", commit)
    (tmp_path / "file").write_text("2")
    assert commit_of(tmp_path) == f"{commit}-dirty"


def test_the_metadata_is_what_an_index_shows(site: Path) -> None:
    """Name, licence, readme, the few dependencies that every pod carries, and both programs."""
    found = metadata(site)
    assert found["Name"] == "statewarden"
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Description-Content-Type"] == "text/markdown"
    assert str(found.get_payload()).startswith("# statewarden")
    required = [x for x in found.get_all("Requires-Dist", []) if "extra ==" not in x]
    assert {re.split(r"[<>=]", x)[0] for x in required} == {"prometheus-client", "psutil", "watchdog"}
    scripts = configparser.ConfigParser()
    scripts.read(next(site.glob("*.dist-info/entry_points.txt")))
    assert set(scripts["console_scripts"]) == {"statewarden", "statewarden-rollup"}


@pytest.fixture
def installed(site: Path, tmp_path: Path) -> Path:
    """Give the unpacked wheel beside a `docs` of another project, as site-packages may have one."""
    folder = tmp_path / "site-packages"
    shutil.copytree(site, folder)
    (folder / "docs").mkdir()
    return folder


def run(site: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `python -m agent` of a wheel; its libraries are this environment's."""
    return subprocess.run(
        [sys.executable, "-m", "agent", *words],
        cwd=cwd, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_wheel_alone_scans_explains_and_completes(installed: Path, tmp_path: Path) -> None:
    """Without the checkout: code, pages and scripts come along."""
    state = plant(tmp_path / "state")
    said = run(installed, "scan", str(state), "--set", "processing_guarantee=at_least_once", cwd=tmp_path)
    assert (said.returncode, said.stderr) == (1, "")
    assert said.stdout.startswith("1 incident open: 1 critical")
    for name in ("torn-store", "rules/unaudited", "StatewardenAgentDown", "LockException", "stopped-volume"):
        said = run(installed, "explain", name, cwd=tmp_path)
        assert (said.returncode, said.stderr) == (0, "")
        assert said.stdout.startswith("# ")
    commit = re.search(r'(?m)^COMMIT = "(.+)"$', (installed / MODULE).read_text("utf-8"))
    assert commit is not None
    assert f"\ncommit    {commit[1]}\n" in run(installed, "--version", cwd=tmp_path).stdout
