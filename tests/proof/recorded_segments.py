"""A recording of a store with two segments in the words of the model; 4.3 and later."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, field
from pathlib import Path

from agent.observe.rocksdb.cache import SstCache
from agent.observe.rocksdb.manifest import ManifestCache
from agent.observe.rocksdb.store import StoreFacts, read_store
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import read_trace
from tests.proof.life import Word

SEGMENT = re.compile(r"([^/]+/\d+_\d+)/([^/]+)/\2\.(\d+)/(.+)")
NOTHING = (0, None, 0)
SOON_S = 1.0
"""A close without a status (transactional stores) follows its flush as soon as that."""


@dataclass
class Written:
    """What of a segment is on disk."""

    puts: int = 0
    offset: int | None = None
    offset_sequence: int = 0
    status: int | None = None


@dataclass
class Segments:
    """What one task with one windowed store did; segments go by their numbers, the oldest first."""

    numbers: tuple[int, ...]
    words: list[Word] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    written: dict[int, Written] = field(default_factory=dict)
    closed: dict[int, Word] = field(default_factory=dict)
    last: tuple[float, int, Word] = (0.0, 0, ())
    is_open: bool = False
    by_pass: bool = False
    cache: SstCache = field(default_factory=SstCache)
    manifests: ManifestCache = field(default_factory=ManifestCache)

    def starts(self) -> None:
        """A process starts; what is there is passed over."""
        self.words.append(("start",))
        self.by_pass = bool(self.written)

    def ends(self) -> None:
        """The process is gone."""
        if self.closed and self.held:
            self.words.append(("cut", *self.closed[min(self.closed)]))
        self.words.append(("kill",) if self.is_open else ("exit",))
        self.held.clear()
        self.closed.clear()
        self.is_open = False

    def opens(self) -> None:
        """The task is opened, by a pass without a word."""
        if not self.is_open and not self.by_pass:
            self.words.append(("open", False))
        self.is_open = True

    def locks(self, number: int) -> None:
        """A segment is opened; one that was not there is made."""
        self.opens()
        if number not in self.written:
            self.words.append(("segment", self.numbers.index(number)))
            self.written[number] = Written()
        self.held.add(number)

    def unlocks(self, at: float, number: int) -> None:
        """It is closed: what it flushed last is told with the close of the store."""
        self.held.discard(number)
        flushed_at, flushed, word = self.last
        if number not in self.closed and flushed == number and at - flushed_at < SOON_S:
            self.words.pop()
            self.closed[number] = word[1:]
        self.closed.setdefault(number, NOTHING)
        if self.held:
            return
        newest, *others = sorted(self.closed, reverse=True)
        if self.by_pass:
            self.words.append(("pass", self.closed[newest][1]))
        else:
            self.words.append(("shut", *self.closed[newest], *(y for x in others for y in self.closed[x])))
        self.closed.clear()
        self.is_open = self.by_pass = False

    def flushes(self, at: float, disk: MemoryDisk, number: int, folder: str) -> None:
        """A manifest was written: what has come to disk."""
        facts = read_store(disk, folder, self.cache, self.manifests, with_counters=False)
        if not isinstance(facts, StoreFacts) or facts.offsets is None or number not in self.written:
            return
        before, offsets = self.written[number], facts.offsets
        status = offsets.status.value if offsets.status else None
        found = [(x.sequence, x.value) for _, x in offsets.offsets]
        sequence, offset = max(found, default=(0, None))
        now = Written(facts.manifest.flushed_sequence, offset, sequence, status)
        puts, is_told = max(now.puts - before.puts, 0), sequence > before.offset_sequence
        if not puts and not is_told and status == before.status:
            return
        late = min(max(now.puts - sequence, 0), puts) if is_told else 0
        amounts = (puts - late, offset if is_told else None, late)
        self.written[number] = now
        if status == 0:
            self.closed[number] = amounts
        else:
            word = ("flush" if number == max(self.written) else "behind", *amounts)
            self.words.append(word)
            self.last = at, number, word


def words_of(trace: Path) -> tuple[Word, ...]:
    """Read the only task of a pod."""
    disk, exits = MemoryDisk(), [b'"exit"' in x for x in gzip.decompress(trace.read_bytes()).splitlines()]
    operations = list(read_trace(trace))
    segments = [match for x in operations if (match := SEGMENT.match(x.path))]
    one, store = Segments(tuple(sorted({int(x[3]) for x in segments}))), segments[0].expand(r"\1/\2")
    for by_exit, operation in zip(exits, operations, strict=True):
        disk.apply(operation)
        match, at = SEGMENT.match(operation.path), operation.at_us / 1e6
        if operation.op == "start":
            one.starts()
        elif operation.op == "exit":
            one.ends()
        elif operation.op == "mkdir" and operation.path == store:
            one.opens()
        elif match is not None and operation.op == "lock":
            one.locks(int(match[3]))
        elif match is not None and operation.op == "unlock" and not by_exit:
            one.unlocks(at, int(match[3]))
        elif match is not None and operation.op == "write" and match[4].startswith("MANIFEST-"):
            one.flushes(at, disk, int(match[3]), operation.path.rpartition("/")[0])
    return tuple(one.words)
