"""Unannounced changes: found by a walk in a watched directory, and no notification came. Pure.

A change is suspected when it is found, and counted only when a fence has passed: a canary that was sent after the
reading has come back, so everything that the kernel had announced before the reading has been received. What was
announced just before the reading, or is still in the queue, therefore never counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agent.contract.events import Change, Source
from agent.inventory.hints import Hint, HintKind
from agent.inventory.transitions import Transition
from agent.layout import names
from agent.layout.paths import PathRole, StatePath, classify

SLACK_US = 10_000_000
"""A notification explains what happened up to so much after it: a store is read after its burst, a manifest is
written after the file that was announced."""

MAX_SUSPECTS = 1_000

_ANNOUNCED = frozenset(
    {
        Change.APPLICATION_SEEN,
        Change.TASK_CREATED,
        Change.TASK_DELETED,
        Change.CHECKPOINT_WRITTEN,
        Change.CHECKPOINT_DELETED,
        Change.CHECKPOINT_MALFORMED,
        Change.STORE_CREATED,
        Change.STORE_DELETED,
        Change.STORE_OPENED,
        Change.STORE_FLUSHED,
    }
)
"""What the kernel announces; locks and processes it does not."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A change found by a walk."""

    thing: str  # what changed: a task, its checkpoint, a store's directory
    directory: str  # where the notification should have come from
    change: Transition  # what changed
    happened_us: int  # when, by the artefact's own time; else when it was found
    since_us: int  # when the thing was read before
    found_us: int  # when it was found


class MissedChanges:
    """Hears all hints, is shown what walks find, and says what was missed."""

    def __init__(self, written_us: Callable[[Transition], int | None]) -> None:
        """Ask `written_us` when the newest file behind a change was written, where the change does not say."""
        self._written_us = written_us
        self._heard_us: dict[str, int] = {}
        self._suspects: list[tuple[int | None, Suspect]] = []

    def receive(self, hints: Iterable[Hint]) -> None:
        """Take notifications as they come."""
        for hint in hints:
            if hint.kind is not HintKind.RESCAN and hint.kind is not HintKind.CANARY:
                thing = _thing_of(classify(hint.path))
                if thing is not None:
                    self._heard_us[thing] = hint.at_us

    def forget(self, before_us: int) -> None:
        """Drop what was received before a time: everything has been read since."""
        floor_us = before_us - SLACK_US
        self._heard_us = {thing: at_us for thing, at_us in self._heard_us.items() if at_us >= floor_us}

    def suspect(self, changes: Iterable[Transition], since_us: int, now_us: int) -> list[Suspect]:
        """List what a walk found and no notification has announced so far."""
        found = []
        for change in changes:
            if change.source is not Source.RESCAN or change.change not in _ANNOUNCED:
                continue
            thing, directory = _place(change)
            happened = change.facts.get("occurred_at_us")
            written_us = happened if isinstance(happened, int) else self._written_us(change)
            happened_us = min(now_us, now_us if written_us is None else written_us)
            one = Suspect(thing, directory, change, happened_us, since_us, now_us)
            if not self._is_explained(one):
                found.append(one)
        return found

    def wait(self, suspects: Iterable[Suspect], fence: int | None) -> None:
        """Keep suspects until a fence has passed; without one (None) for `SLACK_US`."""
        for suspect in suspects:
            if len(self._suspects) < MAX_SUSPECTS:
                self._suspects.append((fence, suspect))

    def decide(self, passed: int, now_us: int) -> list[Suspect]:
        """Give the suspects whose fence has passed and that were not announced in the meantime."""
        if not self._suspects:
            return []
        due: list[Suspect] = []
        waiting: list[tuple[int | None, Suspect]] = []
        for fence, one in self._suspects:
            is_due = now_us - one.found_us >= SLACK_US if fence is None else fence <= passed
            if is_due:
                due.append(one)
            else:
                waiting.append((fence, one))
        self._suspects = waiting
        return [one for one in due if not self._is_explained(one)]

    def clear(self) -> None:
        """Forget every suspect: a loss that is known anyway explains them."""
        self._suspects.clear()

    def _is_explained(self, one: Suspect) -> bool:
        """A new directory is announced once, and what is in it with it."""
        floor_us = one.happened_us - SLACK_US
        task = f"{one.change.application}/{one.change.task}"
        return max(self._heard_us.get(one.thing, 0), self._heard_us.get(task, 0)) >= floor_us


def _thing_of(place: StatePath) -> str | None:
    if place.role is PathRole.CHECKPOINT:
        return place.path
    if place.role is PathRole.TEMPORARY:
        return f"{place.task_path}/{names.CHECKPOINT_FILE}" if place.task_path else None
    if (database := place.database) is not None:
        return database
    if place.role in (PathRole.STORES, PathRole.SEGMENTED_STORE):
        return place.task_path
    return place.path if place.role in (PathRole.TASK, PathRole.APPLICATION) else None


def _place(change: Transition) -> tuple[str, str]:
    """Return what changed, and the directory whose watch should have announced it."""
    if change.task is None:
        return change.application, ""
    task = f"{change.application}/{change.task}"
    if change.store is None:
        if change.change in (Change.TASK_CREATED, Change.TASK_DELETED):
            return task, task.rpartition("/")[0]
        return f"{task}/{names.CHECKPOINT_FILE}", task
    inner = change.store if change.segment else names.ROCKSDB_DIRECTORY
    database = f"{task}/{inner}/{change.segment or change.store}"
    return database, database
