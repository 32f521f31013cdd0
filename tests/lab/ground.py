"""Where a run is played: a stage that knows what every store must hold, and that brings back what failed by itself."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.agents import Clock, leave
from tests.lab.contents import (
    Found,
    NotNowError,
    Question,
    failure_of,
    has_failed,
    is_running,
    look,
    state_of,
    subtopologies,
)
from tests.lab.design import Run
from tests.lab.judge import Health
from tests.lab.plan import EOS, Plan
from tests.lab.processes import Broker, JavaProcess, LiveError, wait_until
from tests.lab.stage import INNER, Stage
from tests.lab.timeline import Asked
from tests.lab.topics import changelog_differences, output_differences, store_behind
from tests.lab.truth import Batch, Difference, Spans, topic_of
from tests.lab.volumes import Volumes

OLD_MS = 6 * 3_600_000
"""How old the first record is: no broker of 4.x refuses a time in the future, no changelog is cut by its age."""
STILL_S = 15.0
"""A difference that stays for so long while everything runs and is committed is the truth."""
CATCH_UP_S = 240.0
MOST_RETURNS = 8
"""How often instances that fail by themselves are started again."""
GLOBAL_LEFT_OPEN = "Tasks [-1_-1] are corrupted"
"""KAFKA-21034: from 4.3 on exactly-once does not wipe it, and fails at every start until somebody does."""
OWN = "hunt."
"""Settings that begin so are ours, not Kafka Streams'."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the truth: when it was certain, and what was found."""

    at_us: int
    found: Found


class Ground(Stage):
    """Runs one application; see `Stage`."""

    def __init__(self, broker: Broker, home: Path, run: Run, patience_s: float = CATCH_UP_S) -> None:
        """Make the topics; no pod runs yet.

        `patience_s`: how long all that was sent may take to be committed, and the truth to come to rest.
        """
        settings = {key: value for key, value in run.settings.items() if not key.startswith(OWN)}
        self._own = {key: int(value) for key, value in run.settings.items() if key.startswith(OWN)}
        self.volumes = Volumes(home, self._own.get("hunt.volume.mib", 0))
        super().__init__(
            broker,
            home,
            "hunt",
            Plan(run.release, run.guarantee, ",".join(run.stores), run.partitions, settings),
        )
        broker.do(f"topic {self.input}-front {run.partitions}")
        self._output = f"{self.input}-output" if self._own.get("hunt.output") else ""
        if self._output:
            broker.do(f"topic {self._output} {run.partitions}")
        if "group.protocol" in settings:
            broker.do(f"group {self.id} streams.num.standby.replicas={settings['num.standby.replicas']}")
        self._patience_s = patience_s
        self.begun_ms -= OLD_MS
        self.clock_ms = self.begun_ms
        self.all_sent: dict[str, list[Batch]] = defaultdict(list)
        """Topic's ending -> what was sent to it."""
        self.sent_to: dict[str, list[Batch]] = defaultdict(list)
        """Store -> what was sent while it was in the topology."""
        self._counted: list[Batch] = []
        """What the counts of `kv` have taken in, as often as they did."""
        self.keys: Counter[int] = Counter()
        self.failures: list[str] = []
        self.looks: list[Look] = []
        self.asked: list[Asked] = []
        self.parts: dict[str, int] = {}
        self.healths: list[Health] = []
        self._unread = ""
        self.spans = Spans(*(int(run.settings[f"{name}.ms"]) for name in ("window", "retention", "grace")))
        has_steps = any(step.action == "step-clock" for step in run.steps)
        self._clocks: dict[str, Clock] | None = {} if has_steps else None

    # -------------------------------------------------------------------------------- records

    def feed(self, count: int, step_ms: int, jump_ms: int) -> None:
        """Send new keys to each partition of each topic that is read, after a jump of stream time."""
        self.clock_ms += jump_ms
        for number in range(self.plan.partitions):
            first = self.keys[number]
            self.keys[number] += count
            self._send(Batch(number, first, first + count, self.clock_ms, step_ms))
        self.clock_ms += count * step_ms
        since_s = (self.clock_ms - self.begun_ms) // 1000
        self.mark(f"{count} records sent, stream time {since_s} s, {self.clock_ms} ms")

    def feed_again(self, share: int, back_ms: int, is_deletion: bool) -> None:
        """Send the newest keys again, `share` percent of them; as deletions to the tables only."""
        for number in range(self.plan.partitions):
            last = self.keys[number]
            first = last - last * share // 100
            at_ms = self.clock_ms - (0 if is_deletion else back_ms)
            if last > first:
                self._send(Batch(number, first, last, at_ms, 0, is_deletion))
        self.mark("records sent again")

    def _send(self, batch: Batch) -> None:
        present = self.stores.split(",")
        tables = sorted({topic_of(word) for word in present} - {""})
        for ending in [*tables, *(() if batch.is_deletion else ("",))]:
            self.broker.do(
                f"produce {self.input}{ending} {batch.partition} p{batch.partition}- {batch.first} {batch.last}"
                f" {batch.at_ms} {batch.step_ms} {'delete' if batch.is_deletion else 'keyed'}"
            )
            self.all_sent[ending].append(batch)
            self._counted += [] if ending else [batch]
            for word in present:
                if topic_of(word) == ending:
                    self.sent_to[word].append(batch)

    def wait(self, until: str) -> None:
        """Wait for nothing (`sent`), for a first commit (`some`) or for all of them (`committed`)."""
        if until == "committed":
            self.catch_up()
        elif until == "some":
            before = self.committed()
            with contextlib.suppress(LiveError):
                wait_until(lambda: self.committed() > before, "some are committed", 10)

    # -------------------------------------------------------------------------------- pods

    def settings(self, pod: str, release: str) -> dict[str, object]:
        """Give the application's arguments for one pod."""
        output = {"live.output": self._output} if self._output else {}
        return super().settings(pod, release) | output

    def state_dir(self, pod: str) -> Path:
        """Directory that the pod's application and agents share."""
        return self.volumes.path(pod)

    def prepare(self, pod: str) -> JavaProcess:
        """Start a pod's JVM of the present release; it has not joined."""
        self.volumes.make(pod)
        self.mark(f"{pod} starts {self.release}")
        unlink_us, sync_us = (self._own.get(f"hunt.slow_{name}_us", 0) for name in ("unlink", "sync"))
        return self.launch(pod, self.release, slow_unlink_us=unlink_us, slow_sync_us=sync_us)

    def back(self, pod: str, away_ms: int = 0) -> None:
        """Start a pod again after a while."""
        if away_ms:
            self.idle(away_ms / 1000, f"{pod} is away")
        answer = self.prepare(pod).ask("start")
        if GLOBAL_LEFT_OPEN in answer:
            self.pods[pod].kill()
            shutil.rmtree(self.state_dir(pod) / self.id / "global")
            self.mark(f"{pod}'s global store, which kept it from starting, is removed")
            answer = self.prepare(pod).ask("start")
        if answer.startswith("problem"):
            raise LiveError(f"{pod} does not start: {answer}")

    def join(self, pod: str) -> None:
        self.volumes.make(pod)
        if pod not in self.agents:
            self.watch(pod)
        self.back(pod)

    def leave(self, pod: str) -> None:
        """Let a pod that has ended stay away, its agents with it."""
        del self.pods[pod]
        self.unwatch(pod)

    def order(self, pod: str, command: str) -> None:
        """Ask an instance for something; that it cannot is part of its life."""
        try:
            self.mark(f"{pod} {command}: {self.pods[pod].ask(command)}")
        except (LiveError, BrokenPipeError):
            self.mark(f"{pod} does not answer to {command}")

    def stop(self, pod: str = "a") -> None:
        """Close an instance in order; one that has failed meanwhile is only ended."""
        try:
            super().stop(pod)
        except (LiveError, BrokenPipeError):
            self.kill(pod)

    def close_for(self, pod: str, command: str, ms: int) -> None:
        """Ask for a close and end the process after a while, whether it has closed or not."""
        self.mark(f"{pod} closes")
        with contextlib.suppress(BrokenPipeError):
            self.pods[pod].tell(command)
        time.sleep(ms / 1000)
        self.kill(pod)

    def heal(self) -> None:
        """Start again what ended by itself, as the platform would."""
        for pod, java in list(self.pods.items()):
            if has_failed(java):
                self.failures.append(f"{pod}: {failure_of(java)}")
                if len(self.failures) > MOST_RETURNS:
                    raise LiveError(f"{pod} fails again and again: {self.failures[-1]}")
                self.mark(f"{pod} has failed, an exception")
                self.kill(pod)
                self.back(pod)

    # -------------------------------------------------------------------------------- agents

    def agent_command(self, pod: str) -> tuple[str, ...]:
        """Give the command that runs an agent: with a clock that can be set, if the run sets one."""
        if self._clocks is None:
            return super().agent_command(pod)
        return self._clocks.setdefault(pod, Clock(self.home / "clocks" / pod)).launcher()

    def set_clock(self, pod: str, by_s: int) -> None:
        """Set the clock of a pod's agents wrong by so much."""
        assert self._clocks is not None
        self._clocks[pod].set(by_s)
        self.mark(f"the clock of {pod}'s agents is {by_s} s off")

    def unwatch(self, pod: str) -> None:
        """Stop the agents of a pod, as its end would, and note how they fared."""
        self.healths += [leave(agent) for agent in self.agents.pop(pod, [])]

    def end_agents(self, pod: str, how: str) -> None:
        """End a pod's agents, by `kill` or `stop`."""
        self.mark(f"{how} of the agents of {pod}")
        if how == "stop":
            self.unwatch(pod)
        for agent in self.agents.pop(pod, []):
            agent.kill()

    # -------------------------------------------------------------------------------- topology

    def alter(self, store: str) -> None:
        """Add a store to the topology, or remove it."""
        words = self.stores.split(",")
        self.stores = ",".join([x for x in words if x != store] if store in words else [*words, store])
        self.mark(f"the stores are {self.stores}")

    def forget(self) -> None:
        """Reset the application, all of whose pods have ended: its own topics and its offsets are deleted."""
        self.broker.do(f"reset {self.id} {self.input}")
        wait_until(lambda: self.broker.is_forgotten(self.id), "members have left and offsets are deleted")
        for word in self.stores.split(","):
            self.sent_to[word] = list(self.all_sent[topic_of(word)])
        self._counted += self.all_sent[""]
        self.mark("the application is reset")

    # -------------------------------------------------------------------------------- truth

    def catch_up(self) -> None:
        """Wait until every pod runs and all that was sent is committed."""
        try:
            wait_until(self._is_caught_up, "everything is committed", self._patience_s)
        except LiveError as late:
            raise LiveError(f"{late}; {self._progress()}") from late
        self.mark("committed")

    def _progress(self) -> str:
        """Say how far the application has come, for somebody who asks why it came no further."""
        instances = ", ".join(f"{pod} {state_of(java) or 'silent'}" for pod, java in self.pods.items())
        offsets = self.broker.do(f"committed {self.id} {self.input}")
        return f"{self._sent()} sent, {offsets}; {instances}"

    def settle_down(self) -> None:
        """The same, and that the application's own topics are read to their ends, too."""
        self.catch_up()
        if INNER & set(self.stores.split(",")):
            self._wait_inner_committed(self._patience_s)

    def _is_caught_up(self) -> bool:
        self.heal()
        if not all(is_running(java) for java in self.pods.values()):
            return False
        return self.committed() >= self._sent()

    def _sent(self) -> int:
        return sum(
            x.last - x.first for ending, all_ in self.all_sent.items() if ending != "-global" for x in all_
        )

    def check(self) -> None:
        """Compare every store until all are right, or a difference stays."""
        self.settle_down()
        begun_s = since_s = time.monotonic()
        found: Found | None = None
        before: Found | None = None
        while found is None or not found.is_right:
            found = self._find() if self._is_caught_up() else None
            now_s = time.monotonic()
            if found is None or found != before:
                since_s, before = now_s, found
            elif now_s - since_s > STILL_S:
                break
            if now_s - begun_s > self._patience_s:
                raise LiveError(f"the truth does not come to rest: {self._unread or found}")
            time.sleep(0.3)
        self._note(Look(time.time_ns() // 1000, found))

    def _note(self, look: Look) -> None:
        """Keep what a look found, and which copies it asked; tasks have other names once the topology has changed."""
        copies = look.found.copies
        pairs = [(x.pod, self.task_of(x.store, x.partition), x.store) for x in copies or ()]
        self.looks.append(look)
        self.asked.append(Asked(look.at_us, None if copies is None else frozenset(pairs)))
        wrong = [f"{x.store} {x.partition}: {x.figures}" for x in look.found.differences]
        wrong += [f"{x.pod}'s {x.store} {x.partition}: {x.wrong.figures}" for x in copies or () if x.wrong]
        self.mark(f"truth: {'; '.join(wrong) or 'right'}")

    def task_of(self, store: str, partition: int) -> str:
        """Name the task that a partition of a store, or of its topic, belongs to."""
        return f"{self.parts.get(store_behind(store), 0)}_{partition}"

    def _find(self) -> Found | None:
        """Compare now; None: it cannot be done now."""
        self.parts = subtopologies(next(iter(self.pods.values())))
        words, scratch = self.stores.split(","), self.home / "tmp"
        partitions = self.plan.partitions
        question = Question(self.pods, words, self.release, partitions, self.sent_to, self.spans, scratch)
        try:
            found = look(question, [*self.parts])
        except NotNowError as problem:
            self._unread = str(problem)
            return None
        if found.differences:
            return found
        return found._replace(differences=self._topic_differences(words, scratch))

    def _topic_differences(self, words: Sequence[str], scratch: Path) -> tuple[Difference, ...]:
        """Compare topics where every store is right: of a wrong store they hold what it holds."""
        sent = {word: batches for word, batches in self.sent_to.items() if word in words}
        found = changelog_differences(self.broker, self.id, sent, self.spans, scratch)
        if not self._output:
            return found
        word = next(word for word in words if word in ("kv", "kv-b"))
        is_exact = self.plan.guarantee == EOS
        return found + output_differences(
            self.broker, self._output, word, self._counted, self.spans, scratch, is_exact=is_exact
        )

    # -------------------------------------------------------------------------------- end

    def close(self, *, keep: bool = False) -> None:
        """End every process, take volumes away, remove topics and directory."""
        self._stack.close()
        self.volumes.close()
        super().close(keep=keep)
