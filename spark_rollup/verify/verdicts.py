"""What is said of each copy of a store. Values only, no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agent.contract.codec import rfc3339
from spark_rollup.verify.digests import COPY, Copy

COUNTS = ("buckets", "equal", "differing", "unknown", "missing", "extra", "different")
"""What is counted of each copy: buckets of both sides, those that are equal, differ, or cannot be judged; and at least
how many keys are missing, extra, or have another value in those that differ."""

_SAID = {"missing": "missing", "extra": "extra", "different": "with another value"}


class Word(StrEnum):
    """What is said of a copy."""

    EQUAL = "equal"
    DIFFERS = "differs"
    PARTLY = "partly-equal"
    UNDECIDABLE = "undecidable"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of one copy."""

    source: Copy
    word: Word
    reason: str = ""  # why not everything, or nothing, is decided; what is wrong. Empty = all of it is.
    counts: Mapping[str, int] = field(default_factory=dict)  # `COUNTS`, summed up over what is not expired
    segments: tuple[int, ...] = ()  # segments that differ
    expired: frozenset[int] = frozenset()
    """Segments that are older than what is kept: nothing is said of them."""

    def row(self) -> Mapping[str, object]:
        """Give a row of the table `verdicts`."""
        copy = self.source
        return {
            **{name: getattr(copy, name) for name in (*COPY, "topic", "partition", "entries")},
            "offset": copy.last_offset,
            "state": copy.state.value,
            "made_at": rfc3339(copy.made_us),
            "verdict": self.word.value,
            "why": self.reason or None,
            **{name: self.counts.get(name) for name in COUNTS},
        }

    def found(self) -> str:
        """Say how much differs."""
        return ", ".join(
            f"at least {self.counts[name]} {text}" for name, text in _SAID.items() if self.counts.get(name)
        )
