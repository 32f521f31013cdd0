"""What happens to the whole agent: killed, stopped, without room, without rights, its volume taken away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from deploy.demo.agents import Agent
from tests.support.exposed import scraped
from tests.support.lookout_bench import make_task, remove_tree, write_checkpoint
from tests.support.shipped import Data, shipped_records

pytestmark = [pytest.mark.e2e, pytest.mark.inotify]
NOBODY = 65534
Eventually = Callable[..., object]


class Watched:
    """An agent process on a directory, and what it tells."""

    def __init__(self, base: Path, launcher: Sequence[str] = (), settings: Sequence[str] = ()) -> None:
        self.base, self.state = base, base / "state"
        self.state.mkdir(exist_ok=True)
        environment = ["env", *settings] if settings else []
        command = tuple(launcher) or (sys.executable, "-m", "agent")
        self.agent = Agent(
            "pod-a", self.state, base / "own", base / "shipped", {}, launcher=(*environment, *command)
        )

    @property
    def pid(self) -> int:
        return self.agent._process.pid

    def metrics(self) -> dict[str, float]:
        """Scrape once: series as written -> value; empty if nobody answers."""
        return scraped(self.agent.url, 60)

    def offset(self, task: str = "0_0") -> float | None:
        series = f'statewarden_task_checkpoint_offset{{application_id="app",task_id="{task}"}}'
        return self.metrics().get(series)

    def agent_metric(self, name: str, cause: str = "") -> float:
        label = f'{{cause="{cause}"}}' if cause else ""
        return self.metrics().get(f"statewarden_agent_{name}{label}", -1.0)

    def stop(self) -> list[Data]:
        """Stop it in order, and give what it shipped."""
        assert self.agent.stop() == 0, self.agent.errors
        return shipped_records(self.base / "shipped")


@contextmanager
def watched(base: Path, launcher: Sequence[str] = (), settings: Sequence[str] = ()) -> Iterator[Watched]:
    """Run an agent until it is ready; kill it if the test fails."""
    one = Watched(base, launcher, settings)
    try:
        one.agent.wait_ready()
        yield one
    finally:
        one.agent.kill()


def in_namespace(*options: str) -> list[str]:
    """Give the command for a namespace of one's own.

    A machine that allows none cannot run these tests; in CI that fails, because a skip is a failure there.
    """
    for more in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *options, *more]
        if shutil.which("unshare") and not subprocess.run([*command, "true"], capture_output=True).returncode:
            return command
    pytest.skip(f"this machine allows no `unshare {' '.join(options)}`")


def enter(pid: int, script: str) -> None:
    """Run a command in the mount namespace of a process."""
    subprocess.run(["nsenter", "--mount", f"--target={pid}", "sh", "-euc", script], check=True)


def test_kill_and_restart_in_the_middle_of_anything(tmp_path: Path, eventually: Eventually) -> None:
    """SIGKILL at any moment beside a busy writer: the next agent starts, knows the last state and says it was away."""
    state, stop = tmp_path / "state", threading.Event()
    make_task(state)
    offset = [1]

    def write() -> None:
        while not stop.is_set():
            offset[0] += 1
            write_checkpoint(state / "app" / "0_0", offset[0])
            if offset[0] % 50 == 0:
                remove_tree(state / "app" / "0_0")
                make_task(state, "app/0_0", offset[0])
            time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for pause_s in (0.0, 0.03, 0.4):
            with watched(tmp_path, settings=["PYTHONDONTWRITEBYTECODE=1"]):
                time.sleep(pause_s)  # the moment of the kill is part of the test
    finally:
        stop.set()
        writer.join()
    with watched(tmp_path) as last:
        eventually(lambda: last.offset() == offset[0])
        assert last.agent_metric("baseline_failures_total") == 0
        records = last.stop()
    away = [x for data in records if data["kind"] == "heartbeat" for x in data["blind"]]
    assert "agent-away" in {x["cause"] for x in away}
    assert "baseline-lost" not in {x["cause"] for x in away}


@pytest.mark.slow
def test_an_orderly_restart_shows_what_changed(tmp_path: Path, eventually: Eventually) -> None:
    """Stopped, the task recreated and a checkpoint moved, started: told with source baseline."""
    make_task(tmp_path / "state", "app/0_0", 1)
    make_task(tmp_path / "state", "app/0_1", 1)
    with watched(tmp_path) as first:
        eventually(lambda: first.offset() == 1)
        first.stop()
    # made before the old one goes: file systems give a freed inode away again, and then nobody could tell
    make_task(tmp_path / "beside", "app/0_0", 5)
    remove_tree(tmp_path / "state" / "app" / "0_0")
    (tmp_path / "beside" / "app" / "0_0").rename(tmp_path / "state" / "app" / "0_0")
    write_checkpoint(tmp_path / "state" / "app" / "0_1", 7)
    with watched(tmp_path) as second:
        eventually(lambda: second.offset() == 5 and second.offset("0_1") == 7)
        assert second.agent_metric("blind_seconds_total", "agent-away") > 0
        records = second.stop()
    told = [(x["change"], x.get("task_id")) for x in records if x.get("source") == "baseline"]
    assert set(told) >= {("task-deleted", "0_0"), ("task-created", "0_0"), ("checkpoint-written", "0_1")}


@pytest.mark.slow
def test_stopped_by_a_signal_and_continued(tmp_path: Path, eventually: Eventually) -> None:
    """SIGSTOP: the kernel queues what happens; after SIGCONT the last state is known and nothing was lost."""
    make_task(tmp_path / "state")
    with watched(tmp_path) as one:
        os.kill(one.pid, signal.SIGSTOP)
        for offset in range(2, 400):
            write_checkpoint(tmp_path / "state" / "app" / "0_0", offset)
        os.kill(one.pid, signal.SIGCONT)
        eventually(lambda: one.offset() == 399)
        assert one.agent_metric("queue_overflows_total") == 0
        assert one.agent_metric("watch_restarts_total") == 0


@pytest.mark.heavy
@pytest.mark.timeout(180)
def test_stopped_for_a_minute(tmp_path: Path, eventually: Eventually) -> None:
    """A minute in SIGSTOP is told as such, and nothing is restarted for it."""
    make_task(tmp_path / "state")
    with watched(tmp_path) as one:
        os.kill(one.pid, signal.SIGSTOP)
        time.sleep(60)
        write_checkpoint(tmp_path / "state" / "app" / "0_0", 2)
        os.kill(one.pid, signal.SIGCONT)
        eventually(lambda: one.offset() == 2)
        assert 55 < one.agent_metric("blind_seconds_total", "agent-stalled") < 75
        assert one.agent_metric("blind_seconds_total", "canary-missed") == 0


@pytest.mark.slow
def test_the_agents_own_volume_is_full(tmp_path: Path, eventually: Eventually) -> None:
    """No room for baseline or spool: records give way, counted; canary and watch go on, and recover with room."""
    namespace = in_namespace("--mount")
    own = tmp_path / "own"
    own.mkdir()
    script = 'mount -t tmpfs -o size=256k none "$1"; touch "$1/stderr.txt"; shift; exec "$0" -m agent "$@"'
    launcher = [*namespace, "sh", "-c", script, sys.executable, str(own)]
    make_task(tmp_path / "state")
    with watched(tmp_path, launcher, ["STATEWARDEN_RESCAN_SECONDS=1"]) as one:
        enter(one.pid, f"dd if=/dev/zero of={own}/fill bs=1k count=1000 2>/dev/null || true")
        offsets = count(2)

        def gives_way() -> bool:
            write_checkpoint(tmp_path / "state" / "app" / "0_0", next(offsets))
            return sum(x for name, x in one.metrics().items() if "_spool_drops_total" in name) > 0

        eventually(gives_way)
        assert one.agent_metric("canary") == 1
        enter(one.pid, f"rm {own}/fill")
        write_checkpoint(tmp_path / "state" / "app" / "0_0", 1000)
        eventually(lambda: one.offset() == 1000)
        assert one.agent_metric("canaries_missed_total") == 0


@pytest.mark.slow
def test_the_volume_is_unmounted_and_mounted_again(tmp_path: Path, eventually: Eventually) -> None:
    """Unmounted: missing, and timed. Mounted again: read again and watched."""
    namespace = in_namespace("--mount")
    state = tmp_path / "state"
    volume = tmp_path / "volume"
    make_task(volume, offset=1)
    state.mkdir()
    script = 'mount --bind "$1" "$2"; shift 2; exec "$0" -m agent "$@"'
    launcher = [*namespace, "sh", "-c", script, sys.executable, str(volume), str(state)]
    with watched(tmp_path, launcher) as one:
        eventually(lambda: one.offset() == 1)
        enter(one.pid, f"umount -l {state}")
        eventually(lambda: one.offset() is None)
        write_checkpoint(volume / "app" / "0_0", 2)
        enter(one.pid, f"mount --bind {volume} {state}")
        eventually(lambda: one.offset() == 2)
        eventually(lambda: one.agent_metric("blind_seconds_total", "root-replaced") > 0)
        write_checkpoint(volume / "app" / "0_0", 3)
        eventually(lambda: one.offset() == 3)


@pytest.mark.slow
def test_the_kernel_gives_too_few_watches(tmp_path: Path, eventually: Eventually) -> None:
    """A real limit, of a user namespace: tasks keep their watches, stores are polled, the finding says what to set."""
    unshared = in_namespace("--user", "--map-root-user")
    script = 'echo 30 > /proc/sys/user/max_inotify_watches; exec "$0" -m agent "$@"'
    launcher = [*unshared, "sh", "-c", script, sys.executable]
    for number in range(20):
        make_task(tmp_path / "state", f"app/0_{number}", 1)
        (tmp_path / "state" / f"app/0_{number}" / "rocksdb" / "s").mkdir(parents=True)
    with watched(tmp_path, launcher) as one:
        eventually(lambda: one.offset("0_19") == 1)
        assert one.agent_metric("watches_needed") == 2 + 3 * 20
        assert one.agent_metric("unwatched_directories") > 20
        assert one.agent_metric("slowed", "watch-limit") == 1
        assert one.agent_metric("blind", "watch-refused") == 0
        for number in range(20):
            write_checkpoint(tmp_path / "state" / f"app/0_{number}", 2)
        eventually(lambda: all(one.offset(f"0_{number}") == 2 for number in range(20)))
        make_task(tmp_path / "state", "app/0_20", 3)
        eventually(lambda: one.offset("0_20") == 3)
        assert one.agent_metric("canary") == 1
        records = one.stop()
    summaries = [x["summary"] for x in records if x.get("detector") == "auditor-blind"]
    assert any(
        "max_inotify_watches=30" in text and "set user.max_inotify_watches=" in text for text in summaries
    )


@pytest.mark.heavy
def test_no_queue_is_left(tmp_path: Path, eventually: Eventually) -> None:
    """The user has no inotify instance left: the agent starts, polls, and names the limit."""
    unshared = in_namespace("--user", "--map-root-user")
    script = 'echo 0 > /proc/sys/user/max_inotify_instances; exec "$0" -m agent "$@"'
    launcher = [*unshared, "sh", "-c", script, sys.executable]
    make_task(tmp_path / "state")
    with watched(tmp_path, launcher) as one:
        eventually(lambda: one.agent_metric("slowed", "watch-limit") == 1)
        write_checkpoint(tmp_path / "state" / "app" / "0_0", 2)
        eventually(lambda: one.offset() == 2)
        records = one.stop()
    summaries = [x["summary"] for x in records if x.get("detector") == "auditor-blind"]
    assert any("set user.max_inotify_instances=" in text for text in summaries)


@pytest.mark.slow
def test_rights_are_taken_away_and_given_back(tmp_path: Path, eventually: Eventually) -> None:
    """A task that may not be read is blind, with its cause and place, until it may be read again."""
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    task = make_task(tmp_path / "state")
    if os.geteuid() == 0:
        for path in [tmp_path / "state", *(tmp_path / "state").rglob("*")]:
            os.chown(path, NOBODY, NOBODY)
            path.chmod(0o755)
    with watched(tmp_path, [*drop, sys.executable, "-m", "agent"]) as one:
        eventually(lambda: one.offset() == 1)
        task.chmod(0)
        write_checkpoint_as_owner(task, 2)
        eventually(lambda: one.agent_metric("blind", "denied") == 1)
        task.chmod(0o755)
        write_checkpoint_as_owner(task, 3)
        eventually(lambda: one.offset() == 3)
        eventually(lambda: one.agent_metric("blind", "denied") == 0)
        assert one.agent_metric("blind_seconds_total", "denied") > 0


def write_checkpoint_as_owner(task: Path, offset: int) -> None:
    """Write whether or not the mode allows it, as the application would that opened the directory before."""
    mode = task.stat().st_mode
    if os.geteuid() != 0:
        task.chmod(0o700)
    write_checkpoint(task, offset)
    (task / ".checkpoint").chmod(0o644)
    task.chmod(mode)
