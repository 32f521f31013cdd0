"""What the agent remembers over a restart: inventory and findings ⇄ lines of the baseline.

Written in slices between other work, when something changed, and never for more than a hundredth of the time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from agent import __version__
from agent.clock import Boot
from agent.contract.finding import Finding
from agent.engine.pipeline import Pipeline
from agent.errors import BaselineError
from agent.findings.alerts import Names
from agent.findings.ledger import Place
from agent.inventory.blindness import close_blind, note_blind
from agent.inventory.model import Application, BlindInterval, Inventory, Task
from agent.inventory.portable import from_plain, to_plain
from agent.ship.baseline import BaselineTable, Line

LOG = logging.getLogger(__name__)

FORMAT = 2
EVERY_S = 15.0  # least distance of two baselines; also how often an unchanged one is dated again
SHARE = 100  # writing takes at most one part in so many of the time
SLICE = 100  # tasks per slice: a few milliseconds, so that nothing waits for it
RETRY_S = 60.0
MAX_TASKS = 50_000  # tasks that are remembered, those with the newest changes; five times the design size

STEP_US = 1_000_000
"""Two readings of two clocks are never so far apart; the watch counts no smaller step of the clock either."""

RUNNING = "running"


@dataclass(slots=True)
class Remembered:
    """What a baseline held."""

    until_us: int  # until when it was right
    reason: str  # why the agent ended, or that it did not say
    inventory: Inventory  # everything known about all tasks
    findings: list[tuple[Place, str, Finding]]  # place, subject, finding
    alert_names: Names = field(default_factory=dict)  # incident -> severity -> detector whose alert it raises
    said: dict[str, int] = field(default_factory=dict)
    """Id of an open finding -> when its present words were said first."""
    boot: Boot | None = None  # the machine's boot in which it was written; None = not known


@dataclass(frozen=True, slots=True)
class Lost:
    """A baseline that could not be used: until when it had been right, and why not."""

    until_us: int
    why: str


def compose(
    pipeline: Pipeline, state_dir: str, at_us: int, reason: str, boot: Boot | None = None
) -> Iterator[Line]:
    """Give the lines of a baseline, one per task; nothing may be believed of a file without the last one."""
    inventory = pipeline.inventory
    head = {"format": FORMAT, "agent": __version__, "state_dir": state_dir, "at_us": at_us, "reason": reason}
    yield head if boot is None else head | {"boot": to_plain(boot)}
    yield {
        "blind": [to_plain(x) for x in inventory.blind],
        "root_seen": inventory.root_seen,
        "ahead_us": inventory.ahead_us,
    }
    yield {"alert_names": {id_: dict(names) for id_, names in pipeline.ledger.alert_names.names.items()}}
    yield {"said": dict(pipeline.said.first_us)}
    count = 4
    for place, subject, finding in pipeline.ledger.remembered():
        yield {"finding": to_plain(finding), "place": list(place), "subject": subject}
        count += 1
    room = MAX_TASKS
    for application in list(inventory.applications.values()):
        tasks = sorted(application.tasks.values(), key=lambda task: -task.changed_us)[:room]
        room -= len(tasks)
        yield {"application": to_plain(replace(application, tasks={}))}
        count += 1
        for task in tasks:
            yield {"of": application.id, "task": to_plain(task)}
            count += 1
    yield {"lines": count}


def understand(lines: Iterator[Line], state_dir: str, until_us: int) -> Remembered:
    """Put lines together again.

    Raises `BaselineError`: they are not a whole baseline of this format and of this state directory.
    """
    head = next(lines, {})
    if not isinstance(head.get("format"), int):
        raise BaselineError("it does not begin with a format")
    if head["format"] != FORMAT:
        raise BaselineError(
            f"statewarden {head.get('agent', 'of another version')} wrote it in format {head['format']}, and this one"
            f" ({__version__}) knows {FORMAT}"
        )
    if head.get("state_dir") != state_dir:
        raise BaselineError(f"it is of another state directory: {head.get('state_dir')!r}")
    found = Remembered(until_us, str(head.get("reason", RUNNING)), Inventory(), [])
    if "boot" in head:
        found.boot = from_plain(Boot, head["boot"])
    count, ended = 1, False
    for line in lines:
        if ended:
            raise BaselineError("it goes on after its end")
        ended = "lines" in line
        if ended and line["lines"] != count:
            raise BaselineError(f"it has {count} lines and says {line['lines']}")
        _add_line(found, line)
        count += 1
    if not ended:
        raise BaselineError("its end is missing")
    for interval in found.inventory.blind:
        if interval.ended_us is None:
            close_blind(found.inventory, interval, until_us)
    return found


def _add_line(found: Remembered, line: Line) -> None:
    try:
        if "task" in line:
            task = from_plain(Task, line["task"])
            application = found.inventory.applications[line["of"]]
            application.tasks[task.id] = task
        elif "application" in line:
            application = from_plain(Application, line["application"])
            found.inventory.applications[application.id] = application
        elif "finding" in line:
            detector, application_id, task_id = line["place"]
            place = Place(str(detector), str(application_id), None if task_id is None else str(task_id))
            finding = from_plain(Finding, line["finding"])
            found.findings.append((place, str(line["subject"]), finding))
        elif "alert_names" in line:
            for id_, names in line["alert_names"].items():
                found.alert_names[str(id_)] = {str(severity): str(name) for severity, name in names.items()}
        elif "said" in line:
            found.said = {str(id_): int(at_us) for id_, at_us in line["said"].items()}
        elif "blind" in line:
            found.inventory.root_seen = bool(line["root_seen"])
            ahead_us = line.get("ahead_us")
            found.inventory.ahead_us = None if ahead_us is None else int(ahead_us)
            for each in line["blind"]:
                found.inventory.blind.append(from_plain(BlindInterval, each))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BaselineError(f"a line is not understood: {error!r}") from error


class BaselineKeeper:
    """Keeps the baseline in step with a pipeline; used by the worker only."""

    def __init__(
        self,
        table: BaselineTable,
        pipeline: Pipeline,
        state_dir: str,
        ask_boot: Callable[[], Boot | None] = lambda: None,
    ) -> None:
        self._table, self._pipeline, self._state_dir, self.ask_boot = table, pipeline, state_dir, ask_boot
        self._lines: Iterator[Line] | None = None
        self._began_us = 0
        self._cost_s = 0.0
        self._next_s = 0.0
        self._revision = -1  # of the baseline on disk
        self._writing = -1
        self.failures = 0
        self.written = 0

    @property
    def is_writing(self) -> bool:
        """Whether the next slice waits for the next turn."""
        return self._lines is not None

    def load(self) -> Remembered | Lost | None:
        """Read what the agent before this one left.

        Gives what it held; None if there is none. One that cannot be used is deleted: no event is in it.
        """
        until_us = None
        try:
            until_us = self._table.written_us()
            if until_us is not None:
                return understand(self._table.lines(), self._state_dir, until_us)
            why = "it was set aside with the database"
        except BaselineError as error:
            why = str(error)
        # with a database that was set aside at the start, or by what was read just now
        lost = self._table.lost()
        if until_us is None and lost is None:
            return None
        if lost is not None:
            until_us, why = (lost[0] if until_us is None else until_us), lost[1]
        LOG.error("can't use the baseline; starting without one: %s", why)
        try:
            self._table.forget()
        except BaselineError as trouble:
            LOG.error("%s", trouble)
        return Lost(until_us or 0, why)

    def save_if_due(self, now_us: int, now_s: float, clock_s: Any) -> None:
        """Write the next slice, if one is due.

        `clock_s`: asks the monotonic clock again, to know what the slice cost.
        """
        if self._lines is None and now_s < self._next_s:
            return
        try:
            if self._lines is None:
                if self._pipeline.revision == self._revision and self._table.touch(now_us):
                    self._next_s = now_s + EVERY_S
                    return
                self._begin(now_us, RUNNING)
            done = self._write_slice()
            self._cost_s += max(0.0, clock_s() - now_s)
            if done:
                self._next_s = clock_s() + max(EVERY_S, self._cost_s * SHARE)
        except BaselineError as error:
            self._give_up(error)
            self._next_s = now_s + RETRY_S

    def finish(self, now_us: int, reason: str) -> None:
        """Write a last baseline, whole, before the agent ends."""
        try:
            self._table.abandon()
            self._begin(now_us, reason)
            while not self._write_slice():
                continue
        except BaselineError as error:
            self._give_up(error)

    def _begin(self, now_us: int, reason: str) -> None:
        self._lines = compose(self._pipeline, self._state_dir, now_us, reason, self.ask_boot())
        self._began_us, self._cost_s = now_us, 0.0
        self._writing = self._pipeline.revision

    def _write_slice(self) -> bool:
        assert self._lines is not None
        size = 0
        for line in islice(self._lines, SLICE):
            self._table.write(line)
            size += 1
        if size == SLICE:
            return False
        self._table.commit(self._began_us)
        self._lines = None
        self._revision = self._writing
        self.written += 1
        return True

    def _give_up(self, error: BaselineError) -> None:
        self._table.abandon()
        self._lines = None
        self.failures += 1
        LOG.error("can't write the baseline: %s", error)


def resume(keeper: BaselineKeeper, pipeline: Pipeline, now_us: int) -> None:
    """Let a pipeline go on where the baseline ends, or take down what is lost with it."""
    found = keeper.load()
    if isinstance(found, Lost):
        note_blind(pipeline.inventory, min(found.until_us, now_us), now_us, "baseline-lost", detail=found.why)
    elif found is not None:
        ended = "ended without a word" if found.reason == RUNNING else f"was stopped ({found.reason})"
        reason = f"it {ended}; who changed what meanwhile, and in which order, cannot be known"
        step_us = _set_by(found.boot, keeper.ask_boot())
        pipeline.ledger.alert_names.names = found.alert_names
        pipeline.said.first_us = found.said
        until_us = min(found.until_us, found.until_us + step_us, now_us)
        pipeline.resume(found.inventory, found.findings, until_us, reason)
        _note_step(pipeline.inventory, found.until_us, step_us, now_us)
        tasks = sum(len(x.tasks) for x in found.inventory.applications.values())
        LOG.info("resuming from the baseline", extra={"tasks": tasks, "findings": len(found.findings)})


def _set_by(before: Boot | None, now: Boot | None) -> int:
    """Return by how much the wall clock was set between two looks at it; 0 = it was not, or that is not known."""
    if before is None or now is None or before.id != now.id:
        return 0
    step_us = now.began_us - before.began_us
    return step_us if abs(step_us) >= STEP_US else 0


def _note_step(inventory: Inventory, until_us: int, step_us: int, now_us: int) -> None:
    """Take down that the clock was set; what was dated before may lie ahead of it."""
    behind_us = max(until_us - now_us, -step_us)
    if step_us:
        detail = f"the clock was set by {step_us / 1_000_000:+.1f} s while the agent was away"
    elif behind_us > 0:  # set back, or the clock of another node
        detail = f"the clock is {behind_us / 1_000_000:.1f} s behind the baseline"
    else:
        return
    note_blind(
        inventory, min(now_us, now_us - step_us), now_us + max(behind_us, 0), "clock-step", detail=detail
    )
