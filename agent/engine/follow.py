"""Which tasks need not be judged at once: those of which only the checkpoint moved on, in the middle of a steady run.

Three tempos: every notification is followed and every change published as it comes; a change is judged at once; of a
steady run only every `TEMPO_US`, and at once again when anything else happens. Nearly every checkpoint decides
something: the first of a session, the one before a close, one that no longer moves where a restoration ended. A step of
a steady run decides nothing: as many checkpoints as are remembered, each one little move forward of the same session,
came one soon after the other. Under exactly-once there is no such run: an active task writes no checkpoint meanwhile.

Source:
    StateManagerUtil.checkpointNeeded (2.8.2 to 4.2.1), StreamTask.commit and StandbyTask.commit (2.0.1 to 2.5.1).
"""

from __future__ import annotations

from agent.contract.events import Change
from agent.engine.schedule import Schedule
from agent.inventory.model import CHECKPOINTS_KEPT, CheckpointFact, Task
from agent.inventory.settings import SettingsBook
from agent.inventory.transitions import Transition
from agent.quantities.changelog import TEN_THOUSAND

TEMPO_US = 10_000_000
"""How long a step of a steady run waits for a judgement at most."""

SOON_US = 2_000_000
"""Checkpoints that come further apart are no run."""


class Follow:
    """Counts steps, and knows which tasks wait for a judgement."""

    def __init__(self, settings: SettingsBook, tempo_us: int = TEMPO_US) -> None:
        """Let steps wait for `tempo_us`; 0 = none waits."""
        self._settings, self._tempo_us = settings, tempo_us
        self._steps: dict[str, int] = {}  # path of a task -> steps in a row
        self.waiting = Schedule()

    def is_step(self, task: Task, change: Transition) -> bool:
        """Take a change of a task; return whether it is one step of a steady run."""
        if change.change is not Change.CHECKPOINT_WRITTEN or not _is_step(task):
            self._steps.pop(task.path, None)
            return False
        count = self._steps[task.path] = self._steps.get(task.path, 0) + 1
        if count < CHECKPOINTS_KEPT or not self._tempo_us:
            return False
        return task.path in self.waiting.due or self._settings.of(task.application).exactly_once is not True


def _is_step(task: Task) -> bool:
    """Return whether the newest checkpoint moved a little on from the one before, and nothing else goes on in the task.

    A lock that cannot be asked hides closes; a store that was opened and has no checkpoint of its session yet waits for
    its first one; in a bulk load its commits are counted. Entries of other topics are not understood well enough, and
    "unknown" (-4) is no offset. A move by more than 10,000 is the commit timer's from 2.7 on: a restoration and a
    standby write no other on their way, and a smaller one says where they ended.
    """
    if (
        len(task.checkpoints) < 2
        or task.held is None
        or task.walk is not None
        or task.checkpoint_problem is not None
    ):
        return False
    before, after = task.checkpoints[-2:]
    if not _moves_on(before, after):
        return False
    for store in task.stores.values():
        session = store.session
        if session is not None and (session.bulk_load_us or session.first is None):
            return False
    return True


def _moves_on(before: CheckpointFact, after: CheckpointFact) -> bool:
    if (
        before.incarnation != after.incarnation
        or before.held != after.held
        or before.deleted
        or after.deleted
    ):
        return False
    if (
        not 0 < after.written_us - before.written_us <= SOON_US
        or before.offsets.keys() != after.offsets.keys()
    ):
        return False
    if before.foreign or after.foreign or min(before.offsets.values(), default=-1) < 0:
        return False
    steps = [after.offsets[name] - offset for name, offset in before.offsets.items()]
    return min(steps) >= 0 and 0 < sum(steps) <= TEN_THOUSAND
