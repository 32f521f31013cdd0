"""Detector `startup-lock-leak`: an orderly exit left stores of the start-up pass unclosed.

Fires on 4.3.0 when a process ended in order (its other stores were closed) but a store that its start-up pass had
opened was let go without a close (KAFKA-20663). Not reproduced on the released jars so far; kept because the
source allows it.

Source:
    StateDirectory.initializeStartupStores and closeStartupTasks at 4.3.0 (docs/state-format.md#kafka-20663).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from agent.contract.events import Level, Severity
from agent.inventory.model import ProcessLife, Session
from agent.judging.base import DetectorMeta, Evidence, Fact, Kind, TaskCase, Truth, Twin
from agent.judging.rule import Docket, NamedStoreStory, Rule, derived, detector
from agent.judging.upstream import KAFKA_20663

META = DetectorMeta(
    id="startup-lock-leak",
    title="Store opened by the start-up pass was not closed at a clean exit",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    needs=("kafka_streams_version",),
    upstream=(KAFKA_20663,),
    next_action="Expect a long replay or a wipe of this task at the next start; upgrade to 4.3.1.",
    consequence="The next start replays or wipes more than it had to.",
    twin=Twin("N18, the same start on the release with the fix", "control-20663-startup-lock-4.3.1"),
    silent_where=((Fact.STARTUP_LOCK_KEPT, Truth.NO), (Fact.STARTUP_LOCK_KEPT, Truth.MAYBE)),
)

SAME_END_US = 1_000_000
"""No source: an end is seen by notifications, or by a lock poll (250 ms) of the store and of the application's lock."""


class LetGo(NamedStoreStory):
    """A store that was let go with its process."""

    session: Session
    life: ProcessLife
    subject = derived(lambda x: str(x.life.ended_us))
    opened_at_us = derived(lambda x: x.session.released_us or 0)
    affected = derived(lambda x: x.case.affected(KAFKA_20663))

    @cached_property
    def others(self) -> list[Session]:
        """Sessions of other tasks that ended with the process."""
        return [
            session
            for task in self.case.application.tasks.values()
            if task.id != self.task.id
            for store in task.stores.values()
            for session in store.sessions
            if _ended_with(session, self.life)
        ]


def _let_go(case: TaskCase) -> Iterator[LetGo]:
    """List what ended with a process; start-up tasks are those of stream threads."""
    for store in () if case.task.is_global else case.task.stores.values():
        for session in store.sessions:
            life = next((x for x in case.application.lives if _ended_with(session, x)), None)
            if life is not None:
                yield LetGo(case, store, session, life)


def _ended_with(session: Session, life: ProcessLife) -> bool:
    if not life.ended_us or not session.released_us:
        return False
    return abs(life.ended_us - session.released_us) <= SAME_END_US


RULE = Rule[LetGo](
    "a store was not closed at an orderly exit",
    innocents={
        "closed in order": lambda x: x.session.closed is True,
        "nothing was flushed in it": lambda x: x.session.puts_at_release <= x.session.puts_at_open,
        "a kill: another store was not closed either": lambda x: any(y.closed is False for y in x.others),
    },
    unknowns={
        "held too briefly to tell how it ended": lambda x: x.session.closed is None,
        "no other store shows how the process ended": lambda x: (
            not x.others or any(y.closed is None for y in x.others)
        ),
    },
    summary=lambda x, _: f"{x.named} was not closed although its process ended cleanly.",
    evidence=lambda x, _: (
        Evidence(x.session.opened_us, "opened, and flushed since", x.place),
        Evidence(x.opened_at_us, "released without a close", x.place),
    ),
)

DETECTOR = detector(META, Docket(_let_go, (RULE,)))
