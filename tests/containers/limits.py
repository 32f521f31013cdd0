"""What the agent needs in a container: memory, CPU, time to start. Each part yields what it measured, or raises."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.tree_maker import APPLICATION, checkpoint, make_tree, recorded_store
from tests.bench.watch_load import replace_file
from tests.containers.pod import AGENT_UID, APPLICATION_UID, GROUP, Memory, SidecarPod
from tests.containers.podman import AGENT, ROOT, podman
from tests.containers.proofs import require

TRACE = ROOT / "tests" / "data" / "traces" / "benign-restart-alos-4.3.1" / "trace-pod-a.jsonl.gz"
READY_S = 900.0
WORK_S = 60.0
WRITES_PER_S = 100
_ALL_CONTAINERS = Path("/sys/fs/cgroup/cpu/libpod_parent/cpu.shares")
_FIRST = "65536"


@contextmanager
def first_of_all() -> Iterator[None]:
    """Let containers go before all else, within their quotas: what the machine does elsewhere is not their time."""
    _ALL_CONTAINERS.parent.mkdir(exist_ok=True)
    before = _ALL_CONTAINERS.read_text()
    _ALL_CONTAINERS.write_text(_FIRST)
    try:
        yield
    finally:
        _ALL_CONTAINERS.write_text(before)


@contextmanager
def with_tasks(home: Path, name: str, tasks: int) -> Iterator[SidecarPod]:
    """Give a pod whose volume holds so many tasks, each with a real store; the agent does not run yet."""
    one = SidecarPod(home / name, f"sw-{name}")
    try:
        make_tree(one.state, tasks, recorded_store(TRACE))
        owner = f"{APPLICATION_UID}:{GROUP}"
        subprocess.run(["chown", "-R", owner, str(one.state / APPLICATION)], check=True)
        subprocess.run(["chmod", "-R", "g+rX,o-rwx", str(one.state / APPLICATION)], check=True)
        with first_of_all():
            yield one
    finally:
        one.close()


def memory(home: Path) -> Iterator[str]:
    """1,000 tasks in 64 MiB, 10,000 in 160 MiB: start, a minute of work, stop; then what 10,000 take."""
    for tasks, limit_mib in ((1_000, 64), (10_000, 160), (10_000, 0)):
        with with_tasks(home, f"memory-{tasks}-{limit_mib}", tasks) as one:
            agent = one.start_agent(("-m", f"{limit_mib}m") if limit_mib else ())
            ready_s = one.wait_ready(READY_S)
            after_start, cpu_s = one.memory(), one.throttled()[0]
            work(one, tasks, WORK_S)
            one.metrics()
            end = one.memory()
            require(agent.stop(60) == 0, f"{tasks} tasks in {limit_mib} MiB: did not stop in order")
            allowed = f"limit {limit_mib} MiB" if limit_mib else "no limit"
            yield (
                f"{tasks} tasks, {allowed}: ready after {ready_s:.1f} s, {cpu_s:.1f} CPU s; {told(after_start)}; then"
                f" {told(end)}"
            )


def told(one: Memory) -> str:
    """Write an account."""
    return (
        f"charged {one.usage:.0f} MiB (highest {one.highest:.0f}: process {one.process:.0f}, page cache"
        f" {one.cache:.0f}, kernel {one.kernel:.0f}; limit hit {one.refused} times)"
    )


def work(one: SidecarPod, tasks: int, seconds: float, per_s: int = WRITES_PER_S) -> list[float]:
    """Write checkpoints all over the tasks, scrape every 15 s; gives delays from write to metric, in seconds."""
    delays: list[float] = []
    end_s, scrape_s = time.monotonic() + seconds, 0.0
    offset, number = 2_000, 0
    while time.monotonic() < end_s:
        for _ in range(per_s // 10):
            offset += 1
            number = offset * 7919 % tasks
            path = one.state / APPLICATION / f"0_{number}" / ".checkpoint"
            replace_file(str(path), checkpoint(number, offset))
            os.chown(path, APPLICATION_UID, GROUP)
        if time.monotonic() >= scrape_s:
            scrape_s = time.monotonic() + 15.0
            delays.append(_delay(one, number, offset))
        time.sleep(0.1)
    return delays


def _delay(one: SidecarPod, number: int, offset: int) -> float:
    """Wait until the metric of a task shows what was just written."""
    began_s = time.monotonic()
    name, task = "statewarden_task_checkpoint_offset", f"0_{number}"
    one.wait(lambda: one.metric(name, task_id=task) == offset, f"{task} at {offset}", 60.0, poll_s=0.05)
    return time.monotonic() - began_s


def cpu(home: Path) -> Iterator[str]:
    """A tenth of a core at 100 tasks: start, and a minute of ten writes a second without being blind."""
    with with_tasks(home, "cpu", 100) as one:
        agent = one.start_agent(("--cpus", "0.1"))
        ready_s = one.wait_ready()
        used_s, throttled_s = one.throttled()
        yield f"100 tasks, 0.1 CPU: ready after {ready_s:.1f} s with {used_s:.2f} CPU s (throttled {throttled_s:.1f} s)"
        delays = work(one, 100, WORK_S, per_s=10)
        more_s, more_throttled_s = one.throttled()
        blind = sum(
            v for k, v in one.metrics().items() if k.startswith("statewarden_agent_blind_seconds_total")
        )
        share = (more_s - used_s) / WORK_S
        yield (
            f"10 checkpoint writes/s for {WORK_S:.0f} s: {share:.1%} of a core, throttled"
            f" {more_throttled_s - throttled_s:.1f} s, blind {blind:.1f} s, from write to metric (scrape included)"
            f" median {statistics.median(delays):.2f} s, longest {max(delays):.2f} s"
        )
        require(blind == 0.0, "the agent was blind")
        require(agent.stop() == 0, "the agent did not stop in order")


def cold_start(home: Path) -> Iterator[str]:
    """From the process's start to a watch on every directory of 1,000 tasks, and to the first look at all of them."""
    with with_tasks(home, "cold", 1_000) as one:
        limits: tuple[str, ...]
        for name, limits in (("no limit", ()), ("0.1 CPU", ("--cpus", "0.1"))):
            rounds = [armed(one, limits) for _ in range(2 if limits else 5)]
            best, median = min(x["armed_s"] for x in rounds), statistics.median(x["armed_s"] for x in rounds)
            cpu_s, import_s = (
                statistics.median(x[key] for x in rounds) for key in ("armed_cpu_s", "import_cpu_s")
            )
            load = os.getloadavg()[0]
            yield (
                f"{name}: {rounds[0]['watches']:.0f} watches armed after {median:.2f} s (best {best:.2f}; machine's"
                f" load {load:.1f}), {cpu_s:.2f} CPU s, of them {import_s:.2f} for imports"
            )
            agent = one.start_agent(limits)
            ready_s = one.wait_ready(READY_S)
            yield f"{name}: first look at 1,000 tasks done after {ready_s:.1f} s, {one.throttled()[0]:.1f} CPU s"
            agent.stop(60)


def armed(one: SidecarPod, limits: Sequence[object]) -> dict[str, float]:
    """Arm a watch in a fresh container of the agent's image."""
    script = ROOT / "tests" / "containers" / "armed.py"
    answer = podman(
        "run", "--rm", "--read-only", "--cap-drop", "all", "--user", f"{AGENT_UID}:{AGENT_UID}", "--group-add", GROUP,
        "-v", f"{one.state}:/state:ro", "-v", f"{script}:/armed.py:ro", *limits,
        "--entrypoint", "/opt/statewarden/bin/python", AGENT, "/armed.py", "/state",
    )  # fmt: skip
    found: dict[str, float] = json.loads(answer)
    return found
