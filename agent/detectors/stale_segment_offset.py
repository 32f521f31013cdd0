"""Detector `stale-segment-offset`: the oldest segment of a windowed store holds an offset far behind the newest.

On 4.3.0 a windowed store reports the offset of the oldest segment that holds one: after an unclean end everything
since is replayed or is out of range (KAFKA-20663). Normal while it runs: info; a warning after an unclean end. It is
about what the next start reads twice; what it never reads again is reported by `lost-segment`.
Stays quiet on 4.3.1 and later, which ask the newest segment: nothing is read twice there.

Source:
    AbstractSegments.committedOffset at 4.3.0; recorded as `kafka-20663-segments-4.3.0`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from agent.contract.events import Confidence, Level, Severity
from agent.inventory.model import Database, Session
from agent.inventory.openings import starts_of
from agent.judging.base import DetectorMeta, Evidence, Fact, Kind, Mechanism, TaskCase, Truth, Twin
from agent.judging.rule import Docket, Loudness, NamedStoreStory, Proof, Rule, derived, detector
from agent.judging.upstream import KAFKA_20663

HARDLY_BEHIND = 100  # no source: a replay of so few records is over before anybody reads of it

META = DetectorMeta(
    id="stale-segment-offset",
    title="Oldest segment holds an old offset",
    mechanism=Mechanism.LOST_SEGMENT,
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
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
)


class Offsets(NamedStoreStory):
    """A windowed store: the oldest of its segments that hold an offset, its offset, and the highest of all."""

    oldest: Database
    offset: int
    newest: int
    # That the next process runs normally again must not erase the warning from the record: a separate finding.
    subject = derived(lambda x: f"incarnation {x.task.incarnation}{', unclean end' if x.unclean else ''}")
    opened_at_us = derived(lambda x: (x.unclean.released_us if x.unclean else None) or x.oldest.seen_us)
    identity = derived(lambda x: x.oldest.identity)
    affected = derived(lambda x: x.case.affected(KAFKA_20663))

    @cached_property
    def unclean(self) -> Session | None:
        """Its last session that ended, if that end was unclean."""
        ended = [x for x in self.store.sessions if x.released_us is not None]
        return ended[-1] if ended and ended[-1].closed is False else None


def _offsets(case: TaskCase) -> Iterator[Offsets]:
    for store in case.task.stores.values():
        held = [
            (starts, offset, x)
            for x in store.databases.values()
            if (offset := _offset(x)) is not None and (starts := starts_of(x)) is not None
        ]
        if store.segmented and len(held) > 1:
            _, offset, oldest = min(held, key=lambda row: row[0])
            yield Offsets(case, store, oldest, offset, max(offset for _, offset, _ in held))


def _offset(database: Database) -> int | None:
    offsets = database.offsets.offsets if database.offsets is not None else ()
    return max((offset for _, offset, _ in offsets if offset >= 0), default=None)


def _loudness(x: Offsets, _: Proof | None) -> Loudness:
    sure = x.case.says(Fact.OLDEST_SEGMENT_OFFSET) is Truth.YES
    return Loudness(
        Severity.WARNING if x.unclean and sure else Severity.INFO,
        Confidence.CONFIRMED if sure else Confidence.SUSPECTED,
        lasting=not x.unclean,
    )


RULE = Rule[Offsets](
    "the oldest segment answers for the store, with an old offset",
    innocents={
        "the oldest segment is hardly behind the newest": lambda x: x.newest - x.offset <= HARDLY_BEHIND
    },
    loudness=_loudness,
    summary=lambda x, _: (
        f"Task {x.task.id}: the oldest segment of {x.store.name} holds offset {x.offset}, the newest {x.newest}"
        f"{'; after this unclean end the restoration begins at the old one' if x.unclean else ''}."
    ),
    evidence=lambda x, _: (
        Evidence(x.oldest.seen_us, f"offset {x.offset} against {x.newest}", x.oldest.path),
    ),
)

DETECTOR = detector(META, Docket(_offsets, (RULE,)))
