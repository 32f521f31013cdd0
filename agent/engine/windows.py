"""Which changes of a checkpoint wait, so that several are read as one. Pure.

Nearly every checkpoint that is written decides something: the first of a session says what was restored, the one before
a close what was left, one that no longer moves where a restoration ended. Only in the middle of a steady run does none
of them: a task whose checkpoint moves forward several times a second, and to which nothing else happens. Such changes
are taken in together, and six rules keep what detectors decide by:

- Only a steady run is merged: all that is remembered of the checkpoint (the whole history of `CHECKPOINTS_KEPT`) are
  moves forward of one session, one soon after the other. Whatever else is heard or read of the task ends the run.
- A content that stayed for `QUIET_US` is read. The shortest time for which a detector asks whether a checkpoint no
  longer moves is longer (`UNCHANGED_US` in `agent.judging.restoration_end`).
- A judgement while a change waits knows that the content before has moved (`CheckpointFact.moved_us`).
- What waits is read before anything else of the task, and the reading says since when the content before was replaced.
- The last content is always read, at the end of the window at the latest.
- What waits is read when it is announced, and kept: where the file is gone when it is due, or its deletion is heard of,
  that was its last content; and what does not go on from it is followed at once, after it. Only what follows a
  reading, a judgement above all, is saved.

Under exactly-once nothing waits: an active task writes no checkpoint while it runs, so that each decides something.

Source:
    StateManagerUtil.checkpointNeeded (2.8.2 to 4.2.1), StreamTask.commit and StandbyTask.commit (2.0.1 to 2.5.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.contract.events import Change
from agent.engine.schedule import Schedule
from agent.inventory.model import CHECKPOINTS_KEPT, Task
from agent.inventory.observations import CheckpointReading
from agent.inventory.settings import SettingsBook
from agent.inventory.transitions import Transition
from agent.layout import names
from agent.layout.checkpoint import OffsetEntry
from agent.layout.paths import Role, StatePath
from agent.quantities.steady import goes_on, is_step

MERGE_WINDOW_US = 1_000_000
"""Default length of a window."""

QUIET_US = 400_000
"""A change after which none follows for so long is read before its window ends."""

TOGETHER_US = 50_000
"""Windows end in steps of this: a thousand of them would wake the agent a thousand times."""

GROWS_US = 250_000
"""How much longer a window is while the agent is behind: half of the delay that is allowed beside the window itself
(0.5 s), so that the other half is left for the backlog."""

SOON = 2
"""Readings that are so many windows apart, or more, are no run."""


@dataclass(slots=True)
class _Run:
    """Readings of one checkpoint that came soon after each other.

    Args of the dataclass:
        read_us: Time of the newest one.
        readings: How many of them moved forward, with nothing else in between.
        first_us: When the first change was announced that waits now; 0 = none waits.
        newest_us: When the newest of them was heard.
        replaced_us: When the first of them was announced that did not make what was read; 0 = none was.
        announced_us: When the newest change of all was announced.
        is_early: What was read is newer than that: its own announcement is still to come.
        kept: What the newest change that waits said when it was announced; None = it was gone by then.
        said: What it says, as far as it was read, waiting or not.
    """

    read_us: int
    readings: int = 0
    first_us: int = 0
    newest_us: int = 0
    replaced_us: int = 0
    announced_us: int = 0
    is_early: bool = False
    kept: CheckpointReading | None = None
    said: tuple[OffsetEntry, ...] = ()


class Windows:
    """Knows which checkpoints wait, and until when."""

    def __init__(self, window_us: int, settings: SettingsBook) -> None:
        """Merge within `window_us` (0 = never), and nothing of applications with exactly-once."""
        self._window_us = window_us
        self._settings = settings
        self._runs: dict[str, _Run] = {}
        self._due: Schedule[str] = Schedule()
        self.is_behind = False

    def waits(self, path: str, announced_us: int, now_us: int) -> bool:
        """Return whether a change need not be read now.

        Args:
            path: Of the checkpoint.
            announced_us: When the change was announced.
            now_us: Now.
        """
        run = self._runs.get(path)
        if run is None:
            return False
        is_own, run.is_early, run.announced_us = run.is_early, False, announced_us
        if run.readings < CHECKPOINTS_KEPT or now_us >= self._end_us(run):
            return False
        if not is_own:
            run.replaced_us = run.replaced_us or announced_us
        if not run.first_us:
            run.first_us = announced_us
            self._due.schedule(path, _together(min(now_us + QUIET_US, self._end_us(run))))
        run.newest_us = now_us
        return True

    def _end_us(self, run: _Run) -> int:
        return run.read_us + self._window_us + (GROWS_US if self.is_behind else 0)

    def before(self, place: StatePath) -> list[str]:
        """List the checkpoints that wait and that what is heard of a place may depend on; their steady runs are over.

        A checkpoint's own announcement is followed by a reading.
        """
        if place.role is Role.CHECKPOINT or not self._runs:
            return []
        if place.task_path is None:
            return self.below(place.application or "")
        path = checkpoint_path(place.task_path)
        waiting = self.of(path)
        self.unsettle(path)
        return waiting

    def of(self, path: str) -> list[str]:
        """Give a checkpoint if it waits."""
        return [path] if self._due.has(path) else []

    def below(self, directory: str) -> list[str]:
        """List the checkpoints that wait in a directory and below it; empty = all."""
        return self._due.below(f"{directory}/" if directory else "") if len(self._due) else []

    def keep(self, path: str, reading: CheckpointReading) -> bool:
        """Keep what a change that waits says: where its file is gone when it is due, that was its last content.

        Returns:
            Whether it waits: what does not go on from the content before is news, and so is that one.
        """
        run = self._runs[path]
        if reading.unseen is None:
            if reading.problem is not None or not goes_on(run.said, reading.entries):
                return False
            run.kept, run.said = reading, reading.entries
        return True

    def replaced_us(self, path: str) -> int:
        """Return when a change that waits replaced what was read; 0 = none did."""
        run = self._runs.get(path)
        return run.replaced_us if run is not None else 0

    def take(self, path: str) -> tuple[int, CheckpointReading | None]:
        """Say that a checkpoint is read now.

        Returns:
            When a change that waited replaced what was read (0 = none did), and what the newest one was kept with.
        """
        run = self._runs.get(path)
        if run is None or not run.first_us:
            return 0, None
        kept = None if run.kept is None else replace(run.kept, replaced_us=run.replaced_us)
        replaced_us, run.first_us, run.replaced_us, run.kept = run.replaced_us, 0, 0, None
        self._due.drop(path)
        return replaced_us, kept

    def read(self, task: Task, reading: CheckpointReading, now_us: int) -> None:
        """Take note of a reading that was announced, taken in now, and of what the task is with it."""
        if not self._window_us:
            return
        path, known = reading.place.path, task.checkpoints
        run = self._runs.get(path)
        if reading.unseen is not None or len(known) < 2 or task.checkpoint is None:
            self._runs.pop(path, None)
        elif known[-1].seen_us != now_us:
            if (
                run is not None
            ):  # its content is that of an earlier reading, which came after this announcement
                run.read_us = now_us
        elif now_us - known[-2].seen_us >= SOON * self._window_us or not self._may_wait(task):
            self._runs.pop(path, None)
        elif run is None:
            self._runs[path] = _Run(now_us, 2, said=reading.entries)
        else:
            run.read_us, run.said = now_us, reading.entries
            run.readings += 1
            run.is_early = known[-1].written_us > run.announced_us

    def _may_wait(self, task: Task) -> bool:
        return is_steady(task) and self._settings.of(task.application).exactly_once is not True

    def unsettle(self, path: str) -> None:
        """End the steady run: something else happened to the task. What waits goes on waiting."""
        run = self._runs.get(path)
        if run is None:
            return
        if run.first_us:
            run.readings = 0
        else:
            del self._runs[path]

    def note(self, change: Transition) -> None:
        """End the steady run of a task of which anything changed but its checkpoint."""
        if change.task is not None and change.change is not Change.CHECKPOINT_WRITTEN:
            self.unsettle(checkpoint_path(f"{change.application}/{change.task}"))

    def forget(self, path: str) -> CheckpointReading | None:
        """Forget a checkpoint, which is gone; return what it said last, if that waits."""
        _, kept = self.take(path)
        self._runs.pop(path, None)
        return kept

    def next_us(self) -> int | None:
        """When to ask `pop_due` at the latest; None = nothing waits."""
        return self._due.next_us()

    def pop_due(self, now_us: int) -> list[str]:
        """List the checkpoints to be read now: the window is over, or no change has followed for a while."""
        due: list[str] = []
        for path in self._due.pop_due(now_us):
            run = self._runs[path]
            at_us = _together(min(run.newest_us + QUIET_US, self._end_us(run)))
            if at_us <= now_us:
                due.append(path)
            else:
                self._due.schedule(path, at_us)
        return due

    def end(self) -> bool:
        """Make everything due that waits, because nothing will follow; return whether anything does."""
        waiting = self.below("")
        for path in waiting:
            run = self._runs[path]
            run.newest_us = run.read_us = 0
            self._due.schedule(path, 0)
        return bool(waiting)

    def shift(self, by_us: int) -> None:
        """Move every time: the clock was set."""
        self._due.shift(by_us)
        for run in self._runs.values():
            run.read_us += by_us
            run.newest_us += by_us
            run.announced_us += by_us
            run.first_us += by_us if run.first_us else 0
            run.replaced_us += by_us if run.replaced_us else 0
            run.kept = run.kept and replace(run.kept, at_us=run.kept.at_us + by_us)


def checkpoint_path(task_path: str) -> str:
    """Return where a task's checkpoint is."""
    return f"{task_path}/{names.CHECKPOINT_FILE}"


def _together(at_us: int) -> int:
    return -(-at_us // TOGETHER_US) * TOGETHER_US


def is_steady(task: Task) -> bool:
    """Return whether the newest checkpoint of a task was one step of many, and nothing else is going on in it.

    A lock that cannot be asked hides closes; a store that was opened and has no checkpoint of its session yet waits for
    its first one; in a bulk load its commits are counted.
    """
    if task.held is None or task.walk is not None or task.checkpoint_problem is not None:
        return False
    before, fact = task.checkpoints[-2:]
    if not is_step(before, fact):
        return False
    sessions = (store.session for store in task.stores.values())
    return not any(x is not None and (x.bulk_load_us or x.first is None) for x in sessions)
