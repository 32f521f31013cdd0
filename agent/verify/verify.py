"""Compare one store with its changelog: its offsets, its files, the changelog folded, a word for every key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from agent.contract.buckets import StoreKind
from agent.contract.changelog import Times, retention_ms, times_of
from agent.errors import LayoutError, UsageError
from agent.layout.names import CHANGELOG_SUFFIX
from agent.verify.changelog import Changelogs, Record
from agent.verify.compare import Example, Tally, compare, compare_versions, gather
from agent.verify.fold import Folded, Plan, Progress, fold, prefix_of
from agent.verify.kinds import Kind, record_content
from agent.verify.places import Store
from agent.verify.rule import DAMAGE, KnownKeys, Word, sum_up
from agent.verify.scratch import Scratch
from agent.verify.shape import kind_of_one, kind_of_segments, times_of_disk
from agent.verify.stores import CLOSED, SAMPLE, Opened

_HOW = "grant DescribeConfigs on the topic, or give --retention STORE=MS"


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says of stores, each by the store's name."""

    topics: Mapping[str, str] = field(default_factory=dict)
    """Store -> changelog, where it is not the usual one."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # store -> kind, where no entry shows it
    retentions: Mapping[str, int] = field(default_factory=dict)
    """Store -> retention in ms, where the topic's settings may not be read."""
    examples: int = 0


@dataclass(slots=True)
class Result:
    """What is said of one store."""

    store: Store
    word: Word  # the worst of its keys, or `undecidable` as a whole
    reason: str = ""  # why it is undecidable as a whole; empty = it is not
    note: str = ""  # what limits the comparison; empty = nothing
    topic: str = ""  # its changelog; empty = not known
    kind: Kind | None = None
    offsets: dict[int, int | None] = field(default_factory=dict)
    """Segment -> offset of its database; segment 0 for a store of one database."""
    start: int = 0
    end: int = 0  # behind the last one that was read
    tally: Tally = field(default_factory=Tally)
    by_segment: dict[int, Tally] = field(default_factory=dict)
    """Segment -> words of its keys, for segments that are damaged."""
    is_closed: bool | None = None
    """True: closed in order; False: open, or killed; None = not known (before 4.3)."""
    transactions: bool = False  # whether the changelog has records that are not committed
    partitions: dict[int, tuple[int | None, int, int]] = field(default_factory=dict)
    """Of a global store: partition -> offset, start and end; its others are empty then."""

    @property
    def examples(self) -> list[Example]:
        """Keys of which something is said."""
        return self.tally.examples


def verify_store(
    store: Store,
    changelogs: Changelogs,
    given: Given,
    work: Path,
    now_s: float,
    progress: Progress,
    kind: type[Comparison] | None = None,
) -> Result:
    """Compare one store with its changelog; nothing is written into its directory.

    `work`: private directory for the view and the scratch database; both are gone afterwards. `now_s`: time of the
    comparison, seconds since the epoch. `kind`: how; None = as that of a task. What stops it is the reason of
    `undecidable`.
    """
    result = Result(store, Word.UNDECIDABLE, tally=Tally(given.examples))
    with ExitStack() as stack:
        try:
            (kind or Comparison)(store, changelogs, given, work, stack, result).run(now_s, progress)
        except (UsageError, LayoutError) as error:
            result.word, result.reason = Word.UNDECIDABLE, str(error)
            result.tally, result.by_segment = Tally(given.examples), {}
    return result


class Comparison:
    """The steps for a store of a task; what is open is closed with the stack."""

    _opened: Opened

    def __init__(
        self, store: Store, changelogs: Changelogs, given: Given, work: Path, stack: ExitStack, result: Result
    ) -> None:
        self._store = store
        self._changelogs = changelogs
        self._given = given
        self._work = work
        self._stack = stack
        self._result = result

    def run(self, now_s: float, progress: Progress) -> None:
        """Take every step; the order matters: offset, then files, then the changelog's end."""
        self._opened = opened = Opened(self._store, self._work, self._stack)
        result = self._result
        result.topic = self._topic()
        result.offsets = {segment: opened.offset(result.topic, segment) for segment in opened.databases}
        rest = opened.rest(result.topic)
        statuses = {x.status for x in opened.claims.values() if x is not None}
        result.is_closed = None if not statuses else statuses == {CLOSED}
        result.start, result.end = self._changelogs.range(result.topic, self._store.partition)
        if rest is not None:
            self._require(rest, result.start, result.end)
        settings = self._changelogs.settings(result.topic)
        times = self._times(settings)
        result.kind = self._given.kinds.get(self._store.name) or self._kind(times)
        if result.kind is Kind.VERSIONED and times is None:
            times = self._versioned_times(settings)
        plan = Plan(
            result.topic, self._store.partition, result.start, result.end, result.kind, times, result.offsets,
            rest,
        )  # fmt: skip
        scratch = self._stack.enter_context(closing(Scratch(self._work)))
        plan, folded = self._fold(plan, scratch, progress)
        result.start = plan.start
        self._judge(plan, folded, scratch, is_fresh=self._is_fresh(settings, now_s))
        result.word = sum_up(result.tally.counts)

    def _fold(self, plan: Plan, scratch: Scratch, progress: Progress) -> tuple[Plan, Folded]:
        folded = fold(self._changelogs, plan, scratch, progress)
        self._result.transactions |= folded.transactions
        start, _ = self._changelogs.range(plan.topic, plan.partition)
        return replace(plan, start=start), folded  # retention may have taken records meanwhile

    def _is_fresh(self, settings: Mapping[str, str] | None, now_s: float) -> bool:
        """Whether no tombstone can have gone since the databases were written."""
        written_s = max(self._opened.written_s.values(), default=0.0)
        return (now_s - written_s) * 1000 < int((settings or {}).get("delete.retention.ms") or 0)

    # -------------------------------------------------------------------------------- the store's side

    def _topic(self) -> str:
        store, checkpointed = self._store, self._opened.checkpointed
        named = self._given.topics.get(store.name, self._opened.topic())
        if named is not None:
            return named
        if (store.changelog, store.partition) in checkpointed:
            return store.changelog
        foreign = {topic for topic, _ in checkpointed if not topic.endswith(CHANGELOG_SUFFIX)}
        if len(foreign) != 1 or self._opened.claims.get(0):
            return store.changelog
        # a store without its own entry, beside one of a source topic: the changelog, if there is one
        there = self._changelogs.topics(store.changelog)
        return store.changelog if store.changelog in there else foreign.pop()

    def _kind(self, times: Times | None) -> Kind:
        samples = self._opened.samples()
        if self._store.database:
            return kind_of_one([x for _, x in samples])
        assert times is not None
        result = self._result
        keys: list[bytes] = []
        reading = self._changelogs.read(
            result.topic, self._store.partition, result.start, result.end, committed=True
        )
        with closing(reading) as batches:
            for batch in islice(batches, 1):
                keys = [x.key for x in batch[:SAMPLE]]
        if not samples and not keys:
            return Kind.WINDOW
        return kind_of_segments(samples, keys, times)

    # -------------------------------------------------------------------------------- the changelog's side

    def _require(self, offset: int, start: int, end: int) -> None:
        if offset >= end:
            raise UsageError(
                f"its offset {offset} is behind the end of the changelog, {end}: is the topic new?"
            )
        if 0 <= offset < start - 1:
            raise UsageError(
                f"its offset {offset} is before the start of the changelog, {start}: what came between is deleted"
            )

    def _times(self, settings: Mapping[str, str] | None) -> Times | None:
        if self._store.name in self._given.retentions:
            return times_of(self._given.retentions[self._store.name])
        if self._store.database:
            return None
        if settings is None:
            return self._times_of_disk()
        kept_ms = retention_ms(StoreKind.WINDOW, settings)
        if kept_ms is None:
            raise UsageError(
                f"its retention does not follow from the topic's retention.ms={settings['retention.ms']}: give"
                " --retention STORE=MS"
            )
        return times_of(kept_ms)

    def _times_of_disk(self) -> Times:
        """Judge what the segments on disk cover, where the retention is not known."""
        if not self._opened.databases:
            raise UsageError(f"it has no segment, and its retention is unknown: {_HOW}")
        times = times_of_disk(self._opened.databases)
        self._result.note = (
            f"its retention is unknown: anything older than its oldest segment, {times.oldest_ms}, is counted as"
            f" expired, lost or not; {_HOW}"
        )
        return times

    def _versioned_times(self, settings: Mapping[str, str] | None) -> Times:
        kept_ms = retention_ms(StoreKind.VERSIONED, settings or {})
        if kept_ms is None:
            raise UsageError(f"its history retention is unknown: {_HOW}")
        return times_of(kept_ms)

    # -------------------------------------------------------------------------------- both

    def _judge(self, plan: Plan, folded: Folded, scratch: Scratch, *, is_fresh: bool) -> None:
        if not plan.kind.is_segmented:
            known = folded.known(plan, plan.offset_of(0), is_fresh=is_fresh)
            own = Tally(self._result.tally.most)
            self._compare_one(plan, known, folded, scratch, own)
            self._take(own, 0, known, folded)
            return
        assert plan.times is not None
        stream_ms = max(folded.stream_ms, max(self._opened.databases, default=-1))
        live_from = plan.times.live_from(stream_ms)
        for segment in sorted(folded.segments | set(self._opened.databases)):
            known = folded.known(plan, plan.offset_of(segment), is_fresh=is_fresh)
            rows = scratch.keys(prefix_of(segment))
            if segment < live_from:
                self._result.tally.counts[Word.EXPIRED] += sum(1 for _ in rows)
                continue
            own = Tally(self._result.tally.most)
            compare(self._opened.databases.get(segment), rows, plan.kind, known, own, segment)
            self._take(own, segment, known, folded)
            if any(own.counts[word] for word in (*DAMAGE, Word.PENDING)):
                self._result.by_segment[segment] = own

    def _compare_one(
        self, plan: Plan, known: KnownKeys, folded: Folded, scratch: Scratch, own: Tally
    ) -> None:
        """Compare a store of one database."""
        database, rows = self._opened.databases.get(0), scratch.keys(prefix_of(0))
        if plan.kind is not Kind.VERSIONED:
            compare(database, rows, plan.kind, known, own)
            return
        assert plan.times is not None
        stream_ms = max(gather(database, scratch), folded.stream_ms)
        compare_versions(scratch, rows, known, stream_ms - plan.times.retention_ms, own)

    def _take(self, own: Tally, segment: int, known: KnownKeys, folded: Folded) -> None:
        """Add the words of one database to those of the store."""
        claims = self._opened.claims.get(segment)
        if claims is None or claims.status != CLOSED:
            own.soften(known, folded.last)
        self._result.tally.join(own)


ASKED = frozenset({Word.EXTRA, Word.DIFFERENT, Word.AHEAD})


def notes_of(result: Result, changelogs: Changelogs) -> dict[int, str]:
    """Say of each example with a value that should not be there which record wrote it.

    Gives place among the examples -> a sentence; examples that lack a value have none, nor has a global store. Raises
    `UsageError`: a broker refuses, or answers no more.
    """
    asked = {number: x for number, x in enumerate(result.examples) if x.word in ASKED}
    if not asked or result.store.is_global:
        return {}
    keys = {x.key for x in asked.values()}
    written = {x.offset: x for x in _records(result, changelogs, keys, committed=False)}
    committed = {x.offset for x in _records(result, changelogs, keys, committed=True)}
    return {number: _note(example, written, committed) for number, example in asked.items()}


def _records(
    result: Result, changelogs: Changelogs, keys: set[bytes], *, committed: bool
) -> Iterator[Record]:
    partition = result.store.partition
    for batch in changelogs.read(result.topic, partition, result.start, result.end, committed=committed):
        yield from (record for record in batch if record.key in keys)


def _note(example: Example, written: dict[int, Record], committed: set[int]) -> str:
    own = [x for x in written.values() if x.key == example.key]
    same = [x for x in own if _wrote(x, example)]
    if same:
        last = max(same, key=lambda x: x.offset)
        if last.offset not in committed:
            return f"it holds the value of offset {last.offset}, of a transaction that was aborted or has not ended"
        after = [x.offset for x in own if x.offset > last.offset and x.offset in committed]
        return f"it holds the value of offset {last.offset}" + (
            f", which offset {after[-1]} replaced" if after else ""
        )
    deleted = [x.offset for x in own if x.value is None and x.offset in committed]
    if deleted:
        return f"deleted by offset {deleted[-1]}; no record that is still there has the value"
    return "no record that is still there has the value" if own else "no record of the key is there"


def _wrote(record: Record, example: Example) -> bool:
    if record.value is None or example.have is None:
        return False
    return example.have.is_of(record_content(record.at_ms, record.headers, record.value))
