"""Detector `overlaid-store`: the changelog is replayed from its start over old files.

Fires when a store with data is opened without a valid offset: everything is replayed on top (out of range, the
2.5 to 2.6 change of the offset's meaning, a crash before the first checkpoint, a 4.3 close while restoring). The
values come out right if the changelog still reaches as far as the store did (what does not: `changelog-truncated`).
Keys that were deleted meanwhile can be back if their tombstones expired, so it is a warning only if the store was
unused for longer than tombstones live, else info.

Source:
    docs/state-format.md#n22, docs/state-format.md#d3, docs/state-format.md#d4; recorded in
    `benign-upgrade-2.3.1-to-2.5.1-to-2.8.2`, `benign-close-while-restoring-4.3.1`.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.events import Confidence, Level, Severity
from agent.inventory.model import Session
from agent.judging.base import (
    DetectorMeta,
    Evidence,
    Fact,
    Kind,
    Mechanism,
    Remedy,
    TaskCase,
    Truth,
    Twin,
    seconds,
)
from agent.judging.reopening import reopenings
from agent.judging.rule import Docket, Loudness, NamedStoreStory, Proof, Rule, derived, detector
from agent.judging.upstream import OVERLAY
from agent.layout.checkpoint import UNKNOWN_OFFSET

META = DetectorMeta(
    id="overlaid-store",
    title="Changelog replayed over old files",
    mechanism=Mechanism.SHORT_CHANGELOG,
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    needs=("delete_retention_ms",),
    upstream=(OVERLAY,),
    remedy=Remedy.CHECK_FIRST,
    next_action=(
        "Usually nothing. If `changelog-truncated` follows, do what that finding says."
        " If keys that were deleted are back (their tombstones are gone from the changelog): stop this"
        " instance cleanly, keep a copy, remove this task directory only, start again and let it restore from empty."
    ),
    consequence="Keys that were deleted may be back.",
    twin=Twin(
        "N22, a crash under at-least-once, replayed over the old files",
        "benign-crash-alos-2.8.2",
        Severity.INFO,
    ),
    silent_where=((Fact.OFFSETS_IN_STORE, Truth.YES), (Fact.OFFSETS_IN_STORE, Truth.MAYBE)),
)


class Reopening(NamedStoreStory):
    """A store that was let go and opened again, the same incarnation; each is an event."""

    issues = (OVERLAY,)
    before: Session
    after: Session
    subject = derived(lambda x: str(x.after.opened_us))
    opened_at_us = derived(lambda x: x.after.opened_us)

    @property
    def idle_us(self) -> int:
        """For how long nobody used it."""
        return self.after.opened_us - (self.before.released_us or self.after.opened_us)


def _reopenings(case: TaskCase) -> Iterator[Reopening]:
    for store in case.task.stores.values():
        for before, after in reopenings(case, store):
            yield Reopening(case, store, before, after)


def _loudness(x: Reopening, _: Proof | None) -> Loudness:
    """Keys that were deleted can be back only once their tombstones have expired."""
    retention_ms = x.case.settings.assumed("delete_retention_ms")
    if retention_ms is not None and x.idle_us > retention_ms * 1_000:
        return Loudness(Severity.WARNING, Confidence.SUSPECTED)
    return Loudness(Severity.INFO, Confidence.CONFIRMED)


RULE = Rule[Reopening](
    "a store with data was opened again without a valid offset",
    innocents={
        "its session made it anew": lambda x: x.after.created,
        "nothing was in it": lambda x: x.before.puts_at_release <= 0,
        "it continues from its offset": lambda x: x.after.offset_at_open not in (None, UNKNOWN_OFFSET),
        "no changelog of its own: checkpoints never name it": lambda x: (
            not x.case.names_changelog_of(x.store.name)
        ),
    },
    loudness=_loudness,
    summary=lambda x, _: (
        f"{x.named} was opened with {x.before.puts_at_release} puts on disk and no valid"
        " offset: its changelog is replayed from the start over them."
    ),
    evidence=lambda x, _: (
        Evidence(x.before.released_us or 0, f"released with {x.before.puts_at_release} puts", x.place),
        Evidence(x.after.opened_us, f"opened {seconds(x.idle_us)} later, no valid offset", x.place),
    ),
)

DETECTOR = detector(META, Docket(_reopenings, (RULE,)))
