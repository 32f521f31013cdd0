"""One scenario on the stage: an application with its pods, two agents per pod, the records sent, the findings made."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from deploy.demo.agents import Agent
from tests.lab.plan import EACH_POD, Plan, configured, numbers
from tests.lab.processes import Broker, JavaProcess, LiveError, start_application, wait_until
from tests.support.shipped import Data, shipped_records

APART = Path(__file__).parents[1] / "support" / "apart.py"
QUIET_S = 3.0
INNER = frozenset({"repartition", "foreign"})
"""Stores that are filled from topics of the application's own: those are committed after the input."""
AGE_MS = 600_000
"""How old the first record is: its segments expire with the stream time, but no topic's retention takes it."""


def is_locked(path: Path) -> bool:
    """Ask /proc/locks: driver and application share a PID namespace."""
    try:
        inode = path.stat().st_ino
    except OSError:
        return False
    return any(line.split()[5].endswith(f":{inode}") for line in Path("/proc/locks").read_text().splitlines())


class Stage:
    """Runs one application; everything lies below one directory and is gone after `close`."""

    has_agents = True

    def __init__(
        self, broker: Broker, home: Path, name: str, plan: Plan, *, application_id: str = ""
    ) -> None:
        """Make the topics; no pod runs yet."""
        shutil.rmtree(home, ignore_errors=True)
        self.plan = plan
        self.broker = broker
        self.home = home
        # an awkward name on purpose: it looks like a changelog, a task and a version
        self.id = application_id or f"{name}-changelog.0_1-{time.time_ns() // 1_000_000}"
        self.input = f"{self.id}-in"
        self.pods: dict[str, JavaProcess] = {}
        self.agents: dict[str, list[Agent]] = {}
        self.marks: list[tuple[int, str]] = []
        self.proof: list[str] = []
        self.entries: list[dict[str, int]] = []
        """What the application held of stores of segments, each time that it was asked."""
        self.sent: Counter[int] = Counter()
        self.begun_ms = time.time_ns() // 1_000_000 - AGE_MS
        self.repeated: Counter[int] = Counter()
        self.stores = plan.stores
        self.release = plan.before or plan.release
        self._later: Mapping[str, object] = {}
        self._stack = ExitStack()
        for topic in (self.input, *(f"{self.input}-{kind}" for kind in ("table", "global", "versioned"))):
            broker.do(f"topic {topic} {plan.partitions}")

    # -------------------------------------------------------------------------------- pods

    def settings(self, pod: str, release: str) -> dict[str, object]:
        """Give the application's arguments for one pod."""
        cache = "statestore.cache.max.bytes" if numbers(release) >= (3, 4) else "cache.max.bytes.buffering"
        usual: dict[str, object] = {
            "application.id": self.id,
            "client.id": pod,
            "bootstrap.servers": self.broker.address,
            "state.dir": self.state_dir(pod),
            "input": self.input,
            "stores": self.stores,
            "processing.guarantee": self.plan.guarantee_name(release),
            "commit.interval.ms": 1000,
            "state.cleanup.delay.ms": 600_000,
            "num.standby.replicas": 0,
            "num.stream.threads": 1,
            "session.timeout.ms": 3000,
            "heartbeat.interval.ms": 500,
            "auto.offset.reset": "earliest",
            "live.write.buffer": 65_536,
            cache: 0,
        }
        given = {**self.plan.settings, **self._later}
        chosen = {key: pod if value == EACH_POD else value for key, value in given.items()}
        return {key: value for key, value in (usual | chosen).items() if value is not None}

    def state_dir(self, pod: str) -> Path:
        """Directory that the pod's application and agents share."""
        return self.home / "state" / pod

    def watch(self, pod: str, release: str | None = None) -> None:
        """Start the two agents of a pod: one told as an operator would, one told nothing and apart from the rest."""
        release = release or self.release
        known = configured(self.settings(pod, release), release)
        self.state_dir(pod).mkdir(parents=True, exist_ok=True)
        command = self.agent_command(pod)
        apart = (sys.executable, str(APART), *command)
        shipped = self.home / "shipped"
        own = self.home / "agents"
        self.agents[pod] = [
            Agent(
                f"{pod}-{name}", self.state_dir(pod), own / f"{pod}-{name}", shipped, facts, launcher=launcher
            )
            for name, facts, launcher in (("told", known, command), ("untold", {}, apart))
        ]
        for agent in self.agents[pod]:
            self._stack.callback(agent.kill)
            agent.wait_ready()

    def agent_command(self, _pod: str) -> tuple[str, ...]:
        """Give the command that runs an agent's command line."""
        return (sys.executable, "-m", "agent")

    def unwatch(self, pod: str) -> None:
        """Stop the agents of a pod, as its end would."""
        for agent in self.agents.pop(pod, []):
            agent.stop()

    def start(
        self,
        pod: str = "a",
        release: str | None = None,
        *,
        slow_unlink_us: int = 0,
        slow_sync_us: int = 0,
        watched: bool = True,
    ) -> None:
        """Start an instance, and its agents if they do not watch yet; wait until it is RUNNING."""
        release = release or self.release
        if watched and self.has_agents and pod not in self.agents:
            self.watch(pod, release)
        self.mark(f"{pod} starts {release}")
        self.launch(pod, release, slow_unlink_us=slow_unlink_us, slow_sync_us=slow_sync_us)
        self.pods[pod].ask("start")
        self.wait_running(pod)

    def launch(
        self,
        pod: str,
        release: str | None = None,
        *,
        slow_unlink_us: int = 0,
        slow_sync_us: int = 0,
        extra: Mapping[str, object] | None = None,
    ) -> JavaProcess:
        """Start an instance's JVM without letting it join; `extra` settings are not told to agents."""
        release = release or self.release
        java = start_application(
            pod,
            release,
            self.settings(pod, release) | dict(extra or {}),
            self.home / "tmp",
            slow_unlink_us=slow_unlink_us,
            slow_sync_us=slow_sync_us,
            launcher=self.launcher(pod, release),
        )
        self._stack.callback(java.kill)
        self.pods[pod] = java
        return java

    def launcher(self, _pod: str, _release: str) -> tuple[str, ...]:
        """Give the command that runs `java`; none: the one on the path."""
        return ()

    def beside(self, pod: str, extra: Mapping[str, object]) -> JavaProcess:
        """Start another application's JVM on a pod's state directory, which does not count here."""
        settings = self.settings(pod, self.plan.release) | dict(extra)
        java = start_application(f"{pod}-beside", self.plan.release, settings, self.home / "tmp")
        self._stack.callback(java.kill)
        return java

    def wait_running(self, pod: str) -> None:
        """Wait until an instance's last word on its state is RUNNING."""

        def is_running() -> bool:
            states = [line for line in self.pods[pod].lines if line.startswith("state ")]
            if not self.pods[pod].is_alive or (states and states[-1].endswith("ERROR")):
                raise LiveError(f"{pod} has failed: {states[-1:]}")
            return bool(states) and states[-1].endswith(" RUNNING")

        wait_until(is_running, f"{pod} RUNNING; {self.pods[pod].lines[-3:]}", within_s=90)
        self.mark(f"{pod} running")

    def stop(self, pod: str = "a") -> None:
        self.mark(f"{pod} closes")
        self.pods[pod].ask("close")
        self.pods[pod].exit()
        self.mark(f"{pod} closed")

    def kill(self, pod: str = "a") -> None:
        self.mark(f"{pod} is killed")
        self.pods[pod].kill()

    def freeze(self, pod: str = "a") -> None:
        """SIGSTOP: a long pause."""
        self.mark(f"{pod} is frozen")
        self.pods[pod].send_signal(signal.SIGSTOP)

    def thaw(self, pod: str = "a") -> None:
        """SIGCONT."""
        self.mark(f"{pod} goes on")
        self.pods[pod].send_signal(signal.SIGCONT)

    def move_on(self, release: str, later: Mapping[str, object] | None) -> None:
        """Let the next start be of a release, with settings that come with it; agents are told so before it."""
        self.release, self._later = release, later or {}
        for pod in list(self.agents):
            self.unwatch(pod)
            self.watch(pod)

    # -------------------------------------------------------------------------------- records

    def send(
        self, count: int, partition: int | None = None, step_ms: int = 1, begin_ms: int | None = None
    ) -> None:
        """Produce records with new keys, to one partition or to each; also to the tables.

        `begin_ms`: time of the first; default: behind those that were sent before.
        """
        partitions = range(self.plan.partitions) if partition is None else (partition,)
        for number in partitions:
            first, last = self.sent[number], self.sent[number] + count
            at_ms = self.begun_ms + first * step_ms if begin_ms is None else begin_ms
            where = f"{number} p{number}- {first} {last} {at_ms} {step_ms}"
            for topic in (self.input, *self._tables()):
                self.broker.do(f"produce {topic} {where}")
            self.sent[number] = last
        self.mark(f"{count} records sent")

    def send_again(
        self, partition: int, first: int, last: int, *, delete: bool = False, later_ms: int = 0
    ) -> None:
        """Produce records with keys that were sent before; `delete`: tombstones, to the tables only."""
        self.repeated[partition] += 0 if delete else last - first
        topics = self._tables() if delete else [self.input, *self._tables()]
        for topic in topics:
            where = (
                f"{partition} p{partition}- {first} {last} {self.begun_ms + later_ms} 0"
                f"{' delete' if delete else ''}"
            )
            self.broker.do(f"produce {topic} {where}")

    def minute_ms(self, number: int) -> int:
        """Give the beginning of a whole minute of the stream's time; segments of two minutes' retention are as long."""
        return (self.begun_ms // 60_000 + 1 + number) * 60_000

    def _tables(self) -> list[str]:
        kinds = ("table", "global", "versioned")
        return [f"{self.input}-{kind}" for kind in kinds if kind in self.stores.split(",")]

    def count(self, store: str = "kv") -> tuple[int, int, int]:
        """Sum up keys and counts of a store over all pods; the third is the highest count of a key."""
        keys, total, highest = 0, 0, 0
        for java in self.pods.values():
            if java.is_alive:
                answer = java.ask(f"count {store}").split()
                if answer[0] == "problem":
                    return -1, -1, -1
                keys, total, highest = (
                    keys + int(answer[0]),
                    total + int(answer[1]),
                    max(highest, int(answer[2])),
                )
        return keys, total, highest

    def settle(self, store: str = "kv", within_s: float = 60) -> None:
        """Wait until a store holds every key that was sent."""
        expected = sum(self.sent.values())
        wait_until(lambda: self.count(store)[0] >= expected, f"{store} holds {expected} keys", within_s)
        self.mark(f"{store} holds {expected}")

    def wait_committed(self, within_s: float = 60) -> None:
        """Wait until the group's committed offsets reach what was sent (commit markers of EOS lie above)."""
        topics = 1 + sum(not name.endswith("-global") for name in self._tables())
        expected = topics * (sum(self.sent.values()) + sum(self.repeated.values()))
        wait_until(lambda: self.committed() >= expected, f"{expected} committed", within_s)
        if INNER & set(self.stores.split(",")):
            self._wait_inner_committed(within_s)
        self.mark("committed")

    def _wait_inner_committed(self, within_s: float) -> None:
        """Wait until nothing more of the application's own topics is committed for two commit intervals."""
        quiet_s = 2 * int(str(self.settings("a", self.plan.release)["commit.interval.ms"])) / 1000
        last, since_s = -1, time.monotonic()

        def is_quiet() -> bool:
            nonlocal last, since_s
            now = self.committed(self.id)
            if now != last:
                last, since_s = now, time.monotonic()
            return time.monotonic() - since_s > quiet_s

        wait_until(is_quiet, "commits of inner topics come to rest", within_s)

    def committed(self, topics: str = "") -> int:
        """Sum of the group's committed offsets of topics that begin so; default: the input."""
        return int(self.broker.do(f"committed {self.id} {topics or self.input}").split()[1])

    def prove(self, what: str, store: str = "kv") -> tuple[int, int, int]:
        """Note what the application itself holds against what it should."""
        keys, total, highest = self.count(store)
        expected = sum(self.sent.values())
        self.proof.append(f"{what}: {store} keys {keys}/{expected}, counts {total}, highest {highest}")
        return keys, total, highest

    def settle_or_prove(self, what: str, store: str = "kv", within_s: float = 20) -> None:
        """Give the application time to hold every key; whether it does or not is the proof."""
        try:
            self.settle(store, within_s)
        except LiveError:
            self.mark(f"{store} does not hold every key")
        self.prove(what, store)

    def stop_after_proof(self, what: str, pod: str = "a") -> None:
        """Prove, then close in order: the close writes what decides."""
        self.prove(what)
        self.stop(pod)

    def fail(self, pod: str = "a", records: int = 50) -> None:
        """Let a record fail the thread, and with it the instance; what supervises the pod ends the process."""
        java = self.pods[pod]
        java.ask("poison 1")
        seen = len(java.lines)
        self.send(records)
        java.wait_for("state ERROR", after=seen)
        self.mark(f"{pod} has failed, an exception")
        java.exit()

    def start_or_die(self, pod: str) -> bool:
        """Start an instance that may fail to; tells whether it runs."""
        try:
            self.start(pod)
        except LiveError:
            self.pods[pod].kill()
            return False
        return True

    # -------------------------------------------------------------------------------- disk

    def task(self, pod: str, task: str) -> Path:
        return self.state_dir(pod) / self.id / task

    def mark(self, what: str) -> None:
        """Note a moment of the driver's timeline."""
        self.marks.append((time.time_ns() // 1000, what))

    def idle(self, seconds: float, why: str) -> None:
        """Let time pass because time itself is the scenario (never to wait for something)."""
        self.mark(f"{why}: {seconds:g} s")
        time.sleep(seconds)

    def mark_files(self, pod: str, task: str) -> frozenset[str]:
        """Names of the key-value store's data files."""
        return frozenset(path.name for path in (self.task(pod, task) / "rocksdb" / "kv").glob("*.sst"))

    def wait_flushed(self, pod: str, task: str, before: frozenset[str]) -> None:
        """Wait until the key-value store has a data file that it did not have."""
        wait_until(lambda: self.mark_files(pod, task) - before, f"{task} of {pod} flushed kv")
        self.mark(f"{task} of {pod} has flushed")

    def all_locked(self, pod: str) -> bool:
        """Tell whether the key-value store is open in every task of a pod."""
        return all(is_locked(self.task(pod, task) / "rocksdb" / "kv" / "LOCK") for task in self.tasks(pod))

    def tasks(self, pod: str) -> list[str]:
        return sorted(path.name for path in (self.state_dir(pod) / self.id).glob("[0-9]*_[0-9]*"))

    # -------------------------------------------------------------------------------- end

    def finish(self) -> list[Data]:
        """Let the agents look on for a moment, stop them, and give every record that they shipped."""
        self.idle(QUIET_S, "agents look on")
        for pod in list(self.agents):
            self.unwatch(pod)
        return shipped_records(self.home / "shipped")

    def close(self, *, keep: bool = False) -> None:
        """End every process, remove topics and directory."""
        self._stack.close()
        self.broker.do(f"drop {self.id}")
        if not keep:
            shutil.rmtree(self.home, ignore_errors=True)
