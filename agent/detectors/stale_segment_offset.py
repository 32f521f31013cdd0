"""Detector `stale-segment-offset`: the oldest segment of a windowed store holds an offset far behind the newest.

On 4.3.0 a windowed store reports the offset of the oldest segment that holds one: after an unclean end everything
since is replayed or is out of range (KAFKA-20663). Normal while it runs: info; a warning after an unclean end. It is
about what the next start reads twice; what it never reads again is reported by `lost-segment`.
Stays quiet on 4.3.1 and later, which ask the newest segment: nothing is read twice there.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Database, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.upstream import KAFKA_20663
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.verdicts import NOISE_RECORDS

META = DetectorMeta(
    id="stale-segment-offset",
    title="Oldest segment holds an old offset",
    mechanism=Mechanism.LOST_SEGMENT,
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("kafka_streams_version",),
    upstream=(KAFKA_20663,),
    next_action=(
        "If `lost-segment` names the store, too, do what it says first. Otherwise the next start replays from the old"
        " offset, or restores in full if it is out of range. Stop cleanly. 4.3.1 replays less."
    ),
    consequence="The next start replays from far back, or restores in full.",
    lowers_risk="Stop cleanly, with a grace period longer than a commit. 4.3.1 replays less.",
    twin=Twin("N5, segments closed clean", "control-20663-close-4.3.0"),
    silent_where=((Fact.OLDEST_SEGMENT_OFFSET, Truth.NO),),
    waits_us=(),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        AbstractSegments.committedOffset at 4.3.0; recorded as `kafka-20663-segments-4.3.0`.
    """
    task = case.task
    if case.is_silent(META):
        return
    for store in task.stores.values():
        held = [
            (x.segment or "", x, offset)
            for x in store.databases.values()
            if (offset := _offset(x)) is not None
        ]
        if not store.segmented or len(held) < 2:
            continue
        held.sort(key=lambda row: row[1].born_us)
        newest = max(row[2] for row in held)
        if newest - held[0][2] > NOISE_RECORDS:
            yield _verdict(case, task, store, held[0][1], held[0][2], newest)


def _offset(database: Database) -> int | None:
    if database.offsets is None:
        return None
    return max((offset for _, offset, _ in database.offsets.offsets if offset >= 0), default=None)


def _verdict(case: TaskCase, task: Task, store: Store, oldest: Database, offset: int, newest: int) -> Verdict:
    ended = [x for x in store.sessions if x.released_us is not None]
    unclean = bool(ended) and ended[-1].closed is False
    sure = case.says(Fact.OLDEST_SEGMENT_OFFSET) is Truth.YES
    return Verdict(
        # A separate finding: that the next process runs normally again must not erase the warning from the record.
        subject=f"incarnation {task.incarnation}{', unclean end' if unclean else ''}",
        opened_at_us=ended[-1].released_us or oldest.seen_us if unclean else oldest.seen_us,
        summary=(
            f"Task {task.id}: the oldest segment of {store.name} holds offset {offset}, the newest {newest}"
            f"{'; after this unclean end the restoration begins at the old one' if unclean else ''}."
        ),
        evidence=(Evidence(oldest.seen_us, f"offset {offset} against {newest}", oldest.path),),
        severity=Severity.WARNING if unclean and sure else Severity.INFO,
        confidence=Confidence.CONFIRMED if sure else Confidence.SUSPECTED,
        store=store.name,
        identity=oldest.identity,
        affected=case.affected(KAFKA_20663),
        lasting=not unclean,
    )
