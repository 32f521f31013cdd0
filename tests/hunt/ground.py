"""Where a run is played: a stage that knows what every store must hold, and that brings back what failed by itself."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.hunt.design import Run
from tests.hunt.truth import STORES, Batch, Contents, Difference, Spans, Store, compare
from tests.live.plan import Plan, numbers
from tests.live.processes import Broker, JavaProcess, LiveError, wait_until
from tests.live.stage import Stage

OLD_MS = 6 * 3_600_000
"""How old the first record is: no broker of 4.x refuses a time in the future, no changelog is cut by its age."""
STILL_S = 15.0
"""A difference that stays for so long while everything runs and is committed is the truth."""
CATCH_UP_S = 240.0
MOST_RETURNS = 4
"""How often in a row an instance that fails by itself is started again."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the truth.

    Args of the dataclass:
        at_us: When it was certain.
        differences: None: every store is right.
    """

    at_us: int
    differences: tuple[Difference, ...]

    def as_json(self) -> dict[str, Any]:
        """For a result."""
        return {"at_us": self.at_us, "differences": [asdict(one) for one in self.differences]}


class Ground(Stage):
    """Runs one application; see `Stage`."""

    def __init__(self, broker: Broker, home: Path, run: Run) -> None:
        """Make the topics; no pod runs yet."""
        plan = Plan(run.release, run.guarantee, ",".join(run.stores), run.partitions, run.settings)
        super().__init__(broker, home, "hunt", plan)
        self.release = run.release
        self.releases: dict[str, str] = {}
        self.begun_ms -= OLD_MS
        self.clock_ms = self.begun_ms
        self.batches: dict[str, list[Batch]] = {}
        self.keys: Counter[int] = Counter()
        self.failures: list[str] = []
        self.looks: list[Look] = []
        self.parts: dict[str, int] = {}
        self.spans = Spans(int(run.settings["window.ms"]), int(run.settings["retention.ms"]))
        broker.do(f"topic {self.input}-front {plan.partitions}")

    # -------------------------------------------------------------------------------- records

    def feed(self, count: int, step_ms: int, jump_ms: int) -> None:
        """Send new keys to each partition of each topic that is read, after a jump of stream time."""
        self.clock_ms += jump_ms
        for number in range(self.plan.partitions):
            first = self.keys[number]
            self.keys[number] += count
            self._send(Batch(number, first, first + count, self.clock_ms, step_ms))
        self.clock_ms += count * step_ms
        self.mark(f"{count} records sent, stream time {(self.clock_ms - self.begun_ms) // 1000} s")

    def feed_again(self, share: int, back_ms: int, is_deletion: bool) -> None:
        """Send the newest keys again, `share` percent of them."""
        for number in range(self.plan.partitions):
            last = self.keys[number]
            first = last - last * share // 100
            back_ms = 0 if is_deletion else back_ms
            if last > first:
                self._send(Batch(number, first, last, self.clock_ms - back_ms, 0, is_deletion))
        self.mark("records sent again")

    def _send(self, batch: Batch) -> None:
        for topic in [*self._tables(), *(() if batch.is_deletion else (self.input,))]:
            self.broker.do(
                f"produce {topic} {batch.partition} p{batch.partition}- {batch.first} {batch.last}"
                f" {batch.at_ms} {batch.step_ms} {'delete' if batch.is_deletion else 'keyed'}"
            )
            self.batches.setdefault(topic.removeprefix(self.input), []).append(batch)

    def wait(self, until: str) -> None:
        """Wait for nothing (`sent`), for a first commit (`some`) or for all of them (`committed`)."""
        if until == "committed":
            self.catch_up()
        elif until == "some":
            before = self.committed()
            self._try(lambda: self.committed() > before, "some are committed", 10)

    # -------------------------------------------------------------------------------- pods

    def back(self, pod: str, away_ms: int = 0) -> None:
        """Start a pod again after a while; what it cannot do is left to `heal`."""
        if away_ms:
            self.idle(away_ms / 1000, f"{pod} is away")
        self.mark(f"{pod} starts {self.release}")
        java = self.launch(pod, self.releases.get(pod, self.release))
        java.ask("start")

    def close_for(self, pod: str, command: str, ms: int) -> None:
        """Ask for a close and end the process after a while, whether it has closed or not."""
        self.mark(f"{pod} closes")
        self.pods[pod].tell(command)
        time.sleep(ms / 1000)
        self.kill(pod)

    def heal(self) -> None:
        """Start again what ended by itself, as the platform would."""
        for pod, java in list(self.pods.items()):
            if not has_failed(java):
                continue
            said = [line for line in java.lines if line.startswith("failed")]
            self.failures.append(f"{pod}: {said[-1] if said else 'ended'}")
            if len(self.failures) > MOST_RETURNS:
                raise LiveError(f"{pod} fails again and again: {self.failures[-1]}")
            self.mark(f"{pod} has failed, an exception")
            java.kill()
            self.back(pod)

    # -------------------------------------------------------------------------------- truth

    def catch_up(self) -> None:
        """Wait until every pod runs and all that was sent is committed."""
        wait_until(self._is_caught_up, "everything is committed", CATCH_UP_S)
        self.mark("committed")

    def _is_caught_up(self) -> bool:
        self.heal()
        sent = sum(
            batch.last - batch.first
            for topic, batches in self.batches.items()
            if topic != "-global"
            for batch in batches
        )
        return all(is_running(java) for java in self.pods.values()) and self.committed() >= sent

    def check(self) -> Look:
        """Compare every store until all are right, or a difference stays."""
        self.catch_up()
        since_s, before = time.monotonic(), None
        while True:
            try:
                differences = self._differences()
            except LiveError as problem:
                if "problem" not in str(problem):
                    raise
                differences = None
            if differences == ():
                break
            if differences is None or differences != before or not self._is_caught_up():
                since_s, before = time.monotonic(), differences
            elif time.monotonic() - since_s > STILL_S:
                break
            time.sleep(0.3)
        look = Look(time.time_ns() // 1000, differences)
        self.looks.append(look)
        wrong = "; ".join(
            f"{x.store} {x.partition}: -{x.lost} +{x.extra} of {x.expected}" for x in differences
        )
        self.mark(f"truth: {wrong or 'right'}")
        return look

    def _differences(self) -> tuple[Difference, ...]:
        self._read_parts()
        found: list[Difference] = []
        words = self.stores.split(",")
        for name, store in STORES.items():
            readable = numbers(self.release) >= numbers(store.readable_since)
            if not readable or (store.of or name) not in words:
                continue
            expected = store.expect(self.batches.get(store.topic, []), self.spans)
            for contents in self._contents(name, store):
                found += compare(name, expected, contents)
        return tuple(found)

    def _contents(self, name: str, store: Store) -> list[Contents]:
        """Read a store from every pod; together they hold it, unless it is global."""
        keys = " ".join(f"p{number}-:{count}" for number, count in sorted(self.keys.items()))
        merged: list[dict[str, str]] = []
        for pod, java in self.pods.items():
            file = self.home / "tmp" / f"{pod}.dump"
            answer = java.ask(f"dump {name} {store.kind} {file} {keys if store.kind == 'versioned' else ''}")
            if answer.startswith("problem"):
                if "InvalidStateStore" in answer and len(self.pods) > 1:
                    continue  # it may have no task of that store
                raise LiveError(f"{name} of {pod}: {answer}")
            entries = dict(line.split("\t", 1) for line in file.read_text().splitlines())
            if merged and not store.everywhere:
                merged[0].update(entries)
            else:
                merged.append(entries)
        return list(merged) or [{}]

    def _read_parts(self) -> None:
        """Learn which sub-topology each store is in, for task names."""
        answer = next(iter(self.pods.values())).ask("stores")
        for number, names in re.findall(r"(\d+):(\S*)", answer):
            self.parts.update({name: int(number) for name in names.split(",") if name})

    # -------------------------------------------------------------------------------- odds

    def _try(self, condition: Callable[[], object], what: str, within_s: float) -> None:
        try:
            wait_until(condition, what, within_s)
        except LiveError:
            self.mark(f"still not: {what}")


def is_running(java: JavaProcess) -> bool:
    """Tell whether an instance's last word on its state is RUNNING."""
    states = [line for line in list(java.lines) if line.startswith("state ")]
    return java.is_alive and bool(states) and states[-1] == "state RUNNING"


def has_failed(java: JavaProcess) -> bool:
    """Tell whether an instance ended by itself, or will never run again."""
    states = [line for line in list(java.lines) if line.startswith("state ")]
    ended = ("ERROR", "NOT_RUNNING", "PENDING_ERROR")
    return not java.is_alive or bool(states and states[-1].split()[1] in ended)
