"""The agent leaves a state directory as it is, and needs no permission to write there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from deploy.demo.agents import Agent
from deploy.demo.materialise import Materialiser, Progress
from deploy.demo.scenarios import Scenario, load_scenario
from tests.support.shipped import Data, shipped_records

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIO = REPOSITORY / "tests" / "data" / "traces" / "kafka-20685-4.1.2"
FLOCK = "hhqqi4x"  # struct flock on 64-bit Linux
NOBODY = 65534

pytestmark = [pytest.mark.e2e, pytest.mark.inotify, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario(SCENARIO)


def lock_state(path: Path) -> tuple[int, int]:
    """Ask for kind and owner of a lock on a file."""
    with path.open("rb") as file:
        answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
    kind, _, _, _, pid = struct.unpack(FLOCK, answer)
    return kind, pid


def picture(directory: Path) -> dict[str, tuple[object, ...]]:
    """Describe every entry by everything that a change would touch; access times are the reader's right."""
    entries = {}
    for path in [directory, *directory.rglob("*")]:
        stat = path.lstat()
        facts: tuple[object, ...] = (
            stat.st_ino, stat.st_mode, stat.st_nlink, stat.st_uid, stat.st_gid, stat.st_size,
            stat.st_mtime_ns, stat.st_ctime_ns,
        )  # fmt: skip
        if path.is_file():
            facts += (hashlib.sha256(path.read_bytes()).hexdigest(), lock_state(path))
        entries[str(path.relative_to(directory))] = facts
    return entries


def at_operation(number: int, act: Callable[[], None]) -> Callable[[Progress], None]:
    """Act once, in the middle of a replay: its processes live and hold their locks meanwhile."""

    def on_progress(progress: Progress) -> None:
        if progress.done == number:
            act()

    return on_progress


def run_agent(tmp_path: Path, state: Path, scenario: Scenario, launcher: Sequence[str] = ()) -> list[Data]:
    """Let an agent start, look at everything, and stop; return what it shipped."""
    agent = start_agent(tmp_path, state, scenario, launcher)
    try:
        agent.wait_ready()
        assert agent.stop() == 0, agent.errors
    finally:
        agent.kill()
    return shipped_records(tmp_path / "shipped")


def start_agent(tmp_path: Path, state: Path, scenario: Scenario, launcher: Sequence[str] = ()) -> Agent:
    command = tuple(launcher) or (sys.executable, "-m", "agent")
    return Agent(
        "pod-a", state, tmp_path / "agent", tmp_path / "shipped", scenario.settings, launcher=command
    )


def scan(state: Path) -> None:
    command = [sys.executable, "-m", "agent", "scan", str(state), "--json"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=240)
    assert done.returncode == 3, done.stderr  # what was just made from a recording has no times of its own


def tasks_seen(records: Sequence[Data]) -> set[str]:
    return {data["task_id"] for data in records if data["kind"] == "summary"}


def test_nothing_changes_under_a_running_application(tmp_path: Path, scenario: Scenario) -> None:
    """A run and a scan leave inode, size, times, mode, content and locks of every entry as they were."""
    state, trace = tmp_path / "state", scenario.traces["pod-a"]
    pictures: list[dict[str, tuple[object, ...]]] = []
    shipped: list[Data] = []

    def watch() -> None:
        pictures.append(picture(state))
        shipped.extend(run_agent(tmp_path, state, scenario))
        scan(state)
        pictures.append(picture(state))

    operations = Materialiser(trace, state).operations
    held_by_now = next(
        number
        for number, op in enumerate(operations)
        if op["op"] == "write" and number > len(operations) // 2
    )
    Materialiser(trace, state, 1e6, on_progress=at_operation(held_by_now, watch)).run()
    before, after = pictures
    assert after == before
    assert any(facts[-1][0] == fcntl.F_WRLCK for facts in before.values() if isinstance(facts[-1], tuple))
    assert tasks_seen(shipped) == {"0_0", "0_1"}


def without_rights() -> list[str]:
    """Give the command that takes away what lets root ignore file modes; nothing is needed for other users."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


def test_no_permission_to_write_is_needed(tmp_path: Path, scenario: Scenario) -> None:
    """Nor is anything changed or tidied up where no process is; who may only read the directory sees every task."""
    state = tmp_path / "state"
    Materialiser(scenario.traces["pod-a"], state, 1e6).run()
    before = picture(state)
    assert tasks_seen(run_agent(tmp_path / "root", state, scenario)) == {"0_0", "0_1"}
    scan(state)
    assert picture(state) == before
    for path in [state, *state.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    before = picture(state)
    assert subprocess.run([*without_rights(), "touch", str(state / "x")], capture_output=True).returncode != 0
    shipped = run_agent(tmp_path, state, scenario, (*without_rights(), sys.executable, "-m", "agent"))
    assert picture(state) == before
    assert tasks_seen(shipped) == {"0_0", "0_1"}


def unshare() -> list[str]:
    """Give the command for a mount namespace of one's own; empty if this machine allows none."""
    for options in (["--mount"], ["--mount", "--map-root-user"]):
        command = ["unshare", *options]
        if (
            shutil.which("unshare")
            and subprocess.run([*command, "true"], capture_output=True).returncode == 0
        ):
            return command
    return []


def test_a_read_only_mount_is_enough(tmp_path: Path, scenario: Scenario) -> None:
    """Behind a read-only mount the agent follows live what the application does on the same volume."""
    namespace = unshare()
    if not namespace:
        pytest.skip("this machine allows no mount namespace")
    state = tmp_path / "state"
    state.mkdir()
    inner = (
        'mount --bind "$2" "$2" && mount -o remount,bind,ro "$2" && ! touch "$2/x" && exec "$0" -m agent "$@"'
    )
    launcher = (*namespace, "sh", "-c", inner, sys.executable)
    agent = start_agent(tmp_path, state, scenario, launcher)
    try:
        agent.wait_ready()
        Materialiser(scenario.traces["pod-a"], state, speed=10).run()
        assert agent.stop() == 0, agent.errors
    finally:
        agent.kill()
    records = shipped_records(tmp_path / "shipped")
    assert tasks_seen(records) == {"0_0", "0_1"}
    changes = {
        data["change"] for data in records if data["kind"] == "transition" and data["source"] == "inotify"
    }
    assert {"task-created", "store-created", "store-flushed", "checkpoint-written"} <= changes
