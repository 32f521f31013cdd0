"""Detector `frozen-checkpoint`: much was flushed, yet the checkpoint does not move.

Fires under at-least-once up to 4.2 when more than 10,000 records were flushed since the last checkpoint of a session
and several commit intervals have passed: the 10,000 rule was due. A crash then replays all of it. Puts may be two or
three a record (versioned and indexed stores): there must be enough for any kind.

Source:
    AbstractTask.OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT (2.7+); up to 2.6 every commit writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.model import CheckpointClaim, Session
from agent.judging.base import DetectorMeta, Evidence, Fact, Kind, TaskCase, Truth, Twin
from agent.judging.rule import Docket, Loudness, Proof, Rule, StoreStory, derived, detector, first_of
from agent.judging.wording import assumptions, checkpoint_of, last_mark
from agent.quantities.flushed import due_flush

META = DetectorMeta(
    id="frozen-checkpoint",
    title="Checkpoint does not move while data is flushed",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    needs=("processing_guarantee", "commit_interval_ms"),
    exactly_once=False,
    next_action=(
        "Nothing is lost: a crash replays everything since that checkpoint. Find the stream thread that does not"
        " commit (application log, thread state); stop the instance cleanly and start it again."
    ),
    consequence="A crash now costs a replay of everything since that checkpoint.",
    twin=Twin("N1, a clean start that goes on writing checkpoints", "benign-restart-alos-2.8.2"),
    silent_where=((Fact.OFFSETS_IN_STORE, Truth.YES),),
)

COMMITS_MISSED = 5
"""No source: one is enough by the code, but a commit may take longer than its interval (a slow volume, a full CPU)."""


class Held(StoreStory):
    """A store that a process holds."""

    session: Session
    identity = None  # it ends with the next checkpoint
    affected = Affected.NO
    subject = derived(lambda x: str(x.mark.at_us))
    opened_at_us = derived(lambda x: x.due_us or x.mark.at_us)

    @property
    def mark(self) -> CheckpointClaim:
        """The last checkpoint of the session."""
        return self.session.last or CheckpointClaim(self.session.opened_us, 0, self.session.puts_at_open)

    @cached_property
    def due_us(self) -> int | None:
        """When more than 10,000 records had been flushed since; None = not yet."""
        return due_flush(self.store, self.mark, self.case.profile)

    @property
    def needed(self) -> tuple[str, ...]:
        """Settings that decide."""
        return (
            "commit_interval_ms",
            *(("num_standby_replicas",) if _writes_none_while_restoring(self) else ()),
        )

    @property
    def may_restore(self) -> bool:
        """Whether it may be a standby that became active, and restores in the same session."""
        return (
            _writes_none_while_restoring(self)
            and (self.case.settings.number("num_standby_replicas") or 0) > 0
        )


def _held(case: TaskCase) -> Iterator[Held]:
    for store in case.task.stores.values():
        if store.session is not None:
            yield Held(case, store, store.session)


def _writes_none_while_restoring(x: Held) -> bool:
    """Up to 3.7 a restoration writes no checkpoint but that of its end, and a session may begin as a standby.

    Source:
        TaskExecutor.commitTasksAndMaybeUpdateCommittableOffsets asks StreamTask.commitNeeded, which is true only of a
        task that has processed (2.8.2, 3.6.1, 3.7.1); DefaultStateUpdater.maybeCheckpointTasks (3.8.0).
    """
    return x.case.says(Fact.STATE_UPDATER) is not Truth.YES


def _may_still_commit(x: Held) -> bool:
    interval_ms = x.case.settings.assumed("commit_interval_ms") or 1
    return x.case.waited_us(x.opened_at_us) <= COMMITS_MISSED * interval_ms * 1_000


def _was_due(x: Held) -> Proof | None:
    if x.may_restore or not all(map(x.case.settings.is_configured, x.needed)):
        return None
    return Proof("by its settings, commits went by")


# What it says


def _evidence(x: Held, _: Proof | None) -> Iterable[Evidence]:
    yield last_mark(x.task, x.session)
    yield Evidence(x.opened_at_us, f"flushes beyond it: {x.store.puts} puts on disk", x.place)
    yield Evidence(x.opened_at_us, "no newer checkpoint", checkpoint_of(x.task))
    yield from assumptions(x.case, x.opened_at_us, *x.needed)


RULE = Rule[Held](
    "a checkpoint does not move while data is flushed",
    innocents={
        "no checkpoint in this session yet: a long restoration": lambda x: x.session.last is None,
        "at most 10,000 records were flushed since": lambda x: x.due_us is None,
    },
    unknowns={"fewer than five commits were missed": _may_still_commit},
    proofs=(_was_due,),
    loudness=lambda x, proof: Loudness(
        Severity.INFO if x.may_restore else Severity.WARNING,
        Confidence.CONFIRMED if proof else Confidence.SUSPECTED,
    ),
    summary=lambda x, _: (
        f"Task {x.task.id}: {x.store.puts - x.mark.puts} puts of store {x.store.name} were flushed since its last"
        " checkpoint, which does not move; a crash would replay them all."
    ),
    evidence=_evidence,
)

DETECTOR = detector(META, Docket(_held, (RULE,), first_of()))
