"""From counts of buckets to a word for each copy of a store. Values only, no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from agent.contract.codec import rfc3339
from spark_rollup.verify.compare import COUNTS, Compared
from spark_rollup.verify.digests import Copy
from spark_rollup.verify.plan import Empty, Judged, Planned, Undecidable

Row = Mapping[str, object]


class Word(StrEnum):
    """What is said of a copy."""

    EQUAL = "equal"
    DIFFERS = "differs"
    PARTLY = "partly-equal"
    UNDECIDABLE = "undecidable"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of one copy.

    Args of the dataclass:
        reason: Why not everything, or nothing, is decided; what is wrong. Empty = all of it is.
        counts: `COUNTS`, summed up over what is not expired.
        segments: Segments that differ.
        doubt: Why a difference is no proof of damage; None = it is one.
        expired: Segments that are older than what is kept: nothing is said of them.
    """

    source: Copy
    word: Word
    reason: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    segments: tuple[int, ...] = ()
    doubt: str | None = None
    expired: frozenset[int] = frozenset()

    def row(self) -> Row:
        """Give a row of the table `verdicts`."""
        copy = self.source
        return {
            **{
                name: getattr(copy, name)
                for name in ("namespace", "application_id", "task_id", "store", "pod")
            },
            "topic": copy.part[0],
            "partition": copy.part[1],
            "offset": copy.last_offset,
            "state": copy.state.value,
            "made_at": rfc3339(copy.made_us),
            "entries": sum(place.entries for place in copy.places),
            "verdict": self.word.value,
            "why": self.reason or None,
            **{name: self.counts.get(name) for name in COUNTS},
        }

    def found(self) -> str:
        """Say how much differs."""
        words = [
            f"at least {self.counts[name]} {text}"
            for name, text in (
                ("missing", "missing"),
                ("extra", "extra"),
                ("different", "with another value"),
            )
            if self.counts.get(name)
        ]
        return ", ".join(words)


def verdicts(planned: Sequence[Planned], compared: Sequence[Compared]) -> list[Verdict]:
    """Judge every copy by what came of those that can be judged."""
    by_copy = {one.copy: one for one in compared if one.other is None}
    found = []
    for one in planned:
        match one:
            case Undecidable():
                found.append(Verdict(one.source, Word.UNDECIDABLE, one.reason))
            case Empty():
                found.append(Verdict(one.source, Word.EQUAL, counts=dict.fromkeys(COUNTS, 0)))
            case Judged():
                found.append(_judged(one, by_copy[one.source.copy]))
    return found


def _judged(one: Judged, compared: Compared) -> Verdict:
    if compared.odd:
        name, number = one.source.part
        return Verdict(
            one.source,
            Word.UNDECIDABLE,
            f"{name}-{number} has keys that are not those of a {one.source.kind.value} store",
        )
    counts, expired = compared.counts, frozenset(compared.expired)
    segments = tuple(compared.segments) if one.times else ()
    if counts["differing"]:
        return Verdict(one.source, Word.DIFFERS, _unknown(one, counts), counts, segments, one.doubt, expired)
    if not counts["unknown"]:
        return Verdict(one.source, Word.EQUAL, counts=counts, expired=expired)
    word = Word.PARTLY if counts["equal"] else Word.UNDECIDABLE
    return Verdict(one.source, word, _unknown(one, counts), counts)


def _unknown(one: Judged, counts: Mapping[str, int]) -> str:
    """Say why buckets cannot be judged."""
    if not counts["unknown"]:
        return ""
    head = f"{counts['unknown']} of {counts['buckets']} buckets cannot be judged: "
    name, number = one.source.part
    if one.ends.earliest > 0:
        return f"{head}{name}-{number} begins at offset {one.ends.earliest}, the records before it are gone"
    if not one.source.is_settled:
        return f"{head}the store went on behind its offset, as one that runs does; a digest of a closed one decides"
    return f"{head}the changelog went on, and may have been compacted since the digest was made"
