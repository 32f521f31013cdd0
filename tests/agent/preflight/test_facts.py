"""Looking at real directories, limits and addresses: permission bits, tmpfs, a read-only mount, a silent port."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent.delivery import ShipSettings, parse_target
from agent.inventory.disk import Unseen
from agent.observe.volume import Space
from agent.preflight import checks, reach
from agent.preflight.checks import check, judge
from agent.preflight.facts import State, survey
from agent.preflight.telling import Level
from tests.agent.cli.commands import plant
from tests.agent.preflight.preflight_support import facts_of

STRANGER = 54321
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else: run as root")

MOUNTED = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def must(result):
    if result: sys.exit(os.strerror(ctypes.get_errno()))
state, spool = sys.argv[1:]
must(libc.unshare(0x20000))
must(libc.mount(b"none", b"/", None, 0x44000, None))
must(libc.mount(b"tmpfs", state.encode(), b"tmpfs", 0, b"size=1m"))
os.makedirs(state + "/app/0_0")
must(libc.mount(spool.encode(), spool.encode(), None, 0x1000, None))
must(libc.mount(spool.encode(), spool.encode(), None, 0x1021, None))
from agent.cli import main
sys.exit(main(["preflight", "--json", "--state-dir", state, "--spool", spool + "/spool"]))
"""


@contextmanager
def as_stranger() -> Iterator[None]:
    """Be a user without rights for a while: file-system rights of this thread only, as the kernel keeps them."""
    libc = ctypes.CDLL(None)
    libc.setfsgid(STRANGER)
    libc.setfsuid(STRANGER)
    try:
        yield
    finally:
        libc.setfsuid(0)
        libc.setfsgid(0)


@pytest.fixture
def public_path() -> Iterator[Path]:
    """Give a directory that everybody may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_planted_directory_is_surveyed(tmp_path: Path) -> None:
    """Applications, tasks and the watches that they want are counted; strangers are told apart."""
    root = plant(tmp_path / "state")
    plant(root, task="__t__/0_1")
    (root / "app" / "global").mkdir()
    (root / "lost+found").mkdir()
    (root / "logs" / "old").mkdir(parents=True)
    (root / "file").touch()
    found = survey(root)
    assert (found.applications, found.strangers, found.tasks) == (["app"], ["logs"], 3)
    # root, application, topology, global, and twice task, rocksdb, store
    assert found.directories == 1 + 1 + 1 + 1 + 2 * 3
    assert found.outcome is None
    assert not found.is_application
    assert survey(root / "app").is_application


def test_the_need_is_extrapolated(tmp_path: Path) -> None:
    """Of many alike tasks a few are looked into, and all are counted."""
    root = tmp_path / "state"
    for number in range(60):
        plant(root, task=f"0_{number}")
    found = survey(root)
    assert found.tasks == 60
    assert found.directories == 1 + 1 + 60 * 3
    assert len(found.below) < 50


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.touch()])
def test_what_is_no_directory_is_reported(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A missing directory, and a file in its place."""
    make(tmp_path / "state")
    assert survey(tmp_path / "state").outcome is Unseen.VANISHED


@ROOT_ONLY
@pytest.mark.parametrize(
    ("mode", "is_readable"), [(0o750, False), (0o755, True), (0o711, False), (0o744, False)]
)
def test_real_permission_bits_decide(public_path: Path, mode: int, is_readable: bool) -> None:
    """Listing needs one bit and looking at what is in it another: both are tried, not computed."""
    root = plant(public_path / "state")
    (root / "app").chmod(mode)
    with as_stranger():
        found = survey(root)
    below = {Path(one.path).name: one for one in found.below}
    assert below["app"].is_readable == is_readable
    assert below["app"].mode == mode
    assert found.root is not None
    assert found.root.is_readable


def test_inotify_is_asked_for_a_queue_and_a_watch(tmp_path: Path) -> None:
    """The kernel itself says whether there is one; without a directory only the queue is asked for."""
    given = "an inotify instance and a watch are available"
    assert given in check("inotify", facts_of(tmp_path)).what
    gone = facts_of(tmp_path / "no")
    assert "an inotify instance is available" in check("inotify", gone).what
    assert "No such file" in check("inotify", replace(gone, state=State())).what


def test_own_volume_is_tried_and_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe leaves nothing, makes no directory, and never is inside the state directory."""
    state, spool = tmp_path / "state", tmp_path / "own" / "spool"
    state.mkdir()

    def told(directory: Path) -> str:
        return check("spool", facts_of(state, spool=str(directory))).what

    monkeypatch.setattr(checks, "measure_space", lambda place: Space(0))
    monkeypatch.setattr(checks, "find_mount", lambda place: Unseen.UNREADABLE)
    assert "may want 72 MiB more" in told(spool)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["state"]
    (spool / "aside").mkdir(parents=True)
    with (spool / "aside" / "segment").open("wb") as file:  # what lies in the spool is room that it has
        file.truncate(8 << 20)
    assert "may want 64 MiB more" in told(spool)
    with (spool / "aside" / "segment").open("wb") as file:
        file.truncate(100 << 20)
    assert told(spool) == "writable, 0 MiB free"
    assert "is inside the state directory" in told(state / "spool")
    assert list(state.iterdir()) == []
    (spool / "spool.db").mkdir()
    assert "spool.db is no file" in told(spool)
    assert "Not a directory" in told(spool / "aside" / "segment")


@ROOT_ONLY
def test_memory_and_read_only_mounts_are_seen(tmp_path: Path, repository: Path) -> None:
    """In a mount namespace of its own: state on tmpfs, spool on a read-only bind mount."""
    state, spool = tmp_path / "state", tmp_path / "own"
    state.mkdir()
    spool.mkdir()
    command = [sys.executable, "-c", MOUNTED, str(state), str(spool)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=240, check=False)
    rows = {row["check"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert (done.returncode, done.stderr) == (1, "")
    assert rows["file-system"]["level"] == "warning"
    assert f"tmpfs, mounted at {state}" in rows["file-system"]["what"]
    assert rows["spool"]["level"] == "failed"
    assert "root file system is read-only" in rows["spool"]["what"]
    assert rows["applications"]["level"] == "ok"


def test_a_listening_port_is_reached_and_a_closed_one_is_not() -> None:
    """What connects is fine, what does not is told with its reason."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        target = parse_target(f"kafka://127.0.0.1:{port},127.0.0.1:1/events")
        tried = reach.addresses(target, ShipSettings())
        assert tried == [("127.0.0.1", port), ("127.0.0.1", 1)]
        said = reach.refusals(tried, by_tls=False)
    assert said == ["127.0.0.1:1: Connection refused"]


def test_an_endpoint_that_says_nothing_takes_bounded_time() -> None:
    """A port that accepts and never shakes hands is given up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        tried = (server.getsockname()[:2],)
        said = reach.refusals(tried, by_tls=True, limit_s=0.1)
        for thread in threading.enumerate():
            if (
                thread.name == "preflight-reach"
            ):  # it gives up by itself; not before the port that it waits for
                thread.join(30)
    assert len(said) == 1
    assert "no answer within 0.1 s" in said[0]


@pytest.mark.parametrize(
    ("url", "ship", "expected"),
    [
        ("https://example.com/x", ShipSettings(), (("example.com", 443),)),
        ("http://localhost:8080", ShipSettings(), (("localhost", 8080),)),
        ("s3://bucket/x", ShipSettings(region="eu-west-1"), (("s3.eu-west-1.amazonaws.com", 443),)),
        ("s3a://bucket", ShipSettings(endpoint="http://localhost:9000"), (("localhost", 9000),)),
        ("gs://bucket", ShipSettings(), (("storage.googleapis.com", 443),)),
        ("az://container/x", ShipSettings(), ()),
        ("abfss://c@account.dfs.core.windows.net/x", ShipSettings(), (("account.dfs.core.windows.net", 443),)),
        ("kafka://a,b:9093/t", ShipSettings(), (("a", 9092), ("b", 9093))),
    ],
)  # fmt: skip
def test_addresses_are_those_of_the_sink(
    url: str, ship: ShipSettings, expected: tuple[tuple[str, int], ...]
) -> None:
    """Each kind of sink, with the port that it would use; none where only the library knows."""
    assert tuple(reach.addresses(parse_target(url), ship)) == expected


def test_everything_is_read_together(tmp_path: Path) -> None:
    """One call fills every fact, and the state directory is as it was."""
    root = plant(tmp_path / "state")
    before = sorted(str(x) for x in root.rglob("*"))
    facts = facts_of(root, spool=str(tmp_path / "spool"), ship_to=str(tmp_path / "out"))
    results = {x.check: x for x in judge(facts)}
    assert f"uid {os.geteuid()}," in facts.who
    assert results["endpoint"].what.startswith("writable, ")
    assert [x for x in results.values() if x.level is Level.FAILED] == []
    assert sorted(str(x) for x in root.rglob("*")) == before
