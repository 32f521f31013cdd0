"""Compare a store with its folded changelog, key by key in order; each database by its own offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from agent.verify.kinds import Content, Kind, content_of, is_index, record_key
from agent.verify.rule import KnownKeys, Word, judge
from agent.verify.scratch import Rows, pair
from agent.verify.stores import Database


@dataclass(frozen=True, slots=True)
class Example:
    """One key of which something is said."""

    word: Word
    key: bytes
    offset: int | None  # of the record that the store should have at least; None = there is none
    have: Content | None  # what the store holds; None = nothing
    segment: int | None = None  # start of its segment; None for a store of one database


@dataclass(slots=True)
class Tally:
    """Words of keys, counted, with some examples of those that are not right."""

    most: int = 0  # how many examples of each word
    counts: Counter[Word] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)

    def add(self, example: Example) -> None:
        """Count one key."""
        self.counts[example.word] += 1
        if example.word in SHOWN and self.counts[example.word] <= self.most:
            self.examples.append(example)

    def join(self, other: Tally) -> None:
        """Add what another one counted; of its examples as many as there is room for."""
        self.counts += other.counts
        held = Counter(x.word for x in self.examples)
        for example in other.examples:
            if held[example.word] < self.most:
                self.examples.append(example)
                held[example.word] += 1

    def soften(self, known: KnownKeys, last: int) -> None:
        """Call `ahead` what an application that is open, or was killed, may have written and never sent.

        A kill takes the producer's buffer. Such values come after everything in the changelog: the database has all of
        that, and its offset is not that of the last record, as it is after an orderly close. They may be deletions.
        Of a compacted changelog it is `undecidable`: what is unknown may be older as well.
        """
        waiting = self.counts[Word.BEHIND] + self.counts[Word.PENDING]
        unknown = [Word.EXTRA, Word.DIFFERENT] + ([] if known.start else [Word.UNDECIDABLE])
        is_closed = known.offset is not None and known.offset >= last
        if is_closed or waiting or not any(self.counts[word] for word in unknown):
            return
        # where records were compacted away, a value that none has may as well be an older one
        said = Word.UNDECIDABLE if known.is_compacted else Word.AHEAD
        for word in {*unknown, Word.MISSING} - {said}:
            self.counts[said] += self.counts.pop(word, 0)
            self.examples = [replace(x, word=said) if x.word is word else x for x in self.examples]


SHOWN = frozenset({Word.MISSING, Word.EXTRA, Word.DIFFERENT, Word.UNDECIDABLE, Word.AHEAD})


def compare(
    database: Database | None,
    rows: Rows,
    kind: Kind,
    known: KnownKeys,
    tally: Tally,
    segment: int | None = None,
) -> None:
    """Compare one database (None = it is not there) with the records of its keys, which come in order.

    Raises `LayoutError`: an entry is not of this kind. Raises `UsageError`: the database is damaged.
    """
    for key, have, records in pair(contents(database, kind), rows):
        word, offset = judge(have, records or (), known)
        if word in SHOWN:
            tally.add(Example(word, record_key(kind, key), offset, have, segment))
        else:
            tally.counts[word] += 1


def contents(database: Database | None, kind: Kind) -> Iterator[tuple[bytes, Content]]:
    """Give key, as the store writes it, and content of every entry, in the order of keys; an index has no content."""
    for key, family, value in database.entries() if database else ():
        if not is_index(kind, key):
            yield key, content_of(kind, family, value)
