"""A recording in the words of the model: what each task did, in order, with puts and offsets."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, field
from pathlib import Path

from agent.inventory.disk import Unseen
from agent.layout.checkpoint import parse_checkpoint
from agent.observe.rocksdb.cache import SstCache
from agent.observe.rocksdb.manifest import ManifestCache, read_manifest
from agent.observe.rocksdb.replay import ManifestView
from agent.observe.rocksdb.store import StoreFacts, read_store
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import read_trace
from tests.proof.eras import Era
from tests.proof.life import GONE, UNKNOWN, Word

IN_TASK = re.compile(r"([^/]+/\d+_\d+)(?:/(.*))?$")
SOON_S = 1.0
NOTHING = ("shut", 0, None, 0)
LONG_WALK_S = 10.0
"""A deletion on the slow volume of some recordings."""


@dataclass
class History:
    """What one task did."""

    task: str
    words: list[tuple[float, Word]] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    puts: dict[str, int] = field(default_factory=dict)
    stores: set[str] = field(default_factory=set)
    offsets: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    in_store: bool = False
    was_there: bool = False
    closing: bool = False
    old: bool = False
    opens_twice: bool = False
    released: bool = True
    is_new: bool = False
    cache: SstCache = field(default_factory=SstCache)
    manifests: ManifestCache = field(default_factory=ManifestCache)

    def says(self, at: float, *word: object) -> None:
        """Add a word; several stores open, flush and close as one."""
        last_at, last = self.words[-1] if self.words else (0.0, ("",))
        if word == ("start",):
            self.was_there = bool(self.offsets)
        elif word == ("kill",) and self.closing and last[0] == "flush":
            self.words[-1] = (last_at, ("shut", *last[1:]))
        soon = at - last_at < SOON_S
        if self.old and word[0] == "open" and last[0] in ("shut", "wipe", "delck"):
            self._opens_up_to_2_5(at, word)
        elif self.old and word == ("torn",) and not self.released:
            self.words[len(self.words) - (last == ("shut", 0)) :] = [(at, ("wipe",))]
        elif (
            word[0] == "open"
            and soon
            and last == ("shut", 0)
            and len(self.words) > 1
            and self.words[-2][1][0] == "open"
        ):
            del self.words[-1]  # a new timestamped store opens twice
        elif word == last and word in (("rm",), ("torn",)) and at - last_at < LONG_WALK_S:
            pass
        elif word[0] == "delck" and last[0] == "open":
            self.words[-1] = (at, ("open", True))
        elif word[0] in ("shut", "flush") and last[0] == "flush" and self.in_store and (soon or self.closing):
            self.words[-1] = (at, (word[0], *_merged(last[1:], word[1:])))
        elif word[0] in ("ckpt", "shut", "flush") and last[0] == "flush" and soon:
            self.words[-1] = (at, (*word[:-1], word[-1] + last[1]))
        else:
            self.words.append((at, word))
        if word[0] == "shut" and self.in_store:
            self._reads_the_pass(at)

    def _opens_up_to_2_5(self, at: float, word: Word) -> None:
        """After the constructor deleted a checkpoint; or under the task's lock: wiped, reopened, or new.

        A new store with timestamps is opened twice; bulk loading may be switched on twice (recorded on 2.0).
        """
        if self.words[-1][1] == ("delck",):
            self.words[-1] = (at, ("open", True))
        elif self.released:
            self.words.append((at, word))
        elif self.words[-1][1] == ("wipe",):
            pass
        elif self.opens_twice and self.is_new and self.words[-1][1] == ("shut", 0):
            self.is_new = False
            del self.words[-1]
        else:
            again = [x for _, x in self.words[-3:-1]] == [("reopen", 0)] * 2
            self.words[-1 - again :] = [(at, ("reopen", self.words[-1][1][1]))]

    def lets_go(self) -> None:
        """Up to 2.5, of the task's lock: what followed the close of the stores is told with it."""
        self.released = True
        match [word for _, word in self.words[-2:]]:
            case [("shut", puts), ("ckpt", offset, _)] if self.old:
                self.words[-2:] = [(self.words[-1][0], ("ended", puts, offset))]
            case [("shut", puts), ("delck",)] if self.old:
                self.words[-2:] = [(self.words[-1][0], ("dirty", puts))]

    def _reads_the_pass(self, at: float) -> None:
        """4.3+: a start opens and closes what is there; what it refuses is let go with nothing written."""
        *before, (opened, first), (_, last) = self.words[-3:]
        if first[0] != "open" or at - opened > LONG_WALK_S:
            return
        if last == NOTHING:
            self.words[-2:] = [(at, ("refused",))]
        elif before and before[0][1] == ("start",) and self.was_there:
            self.words[-2:] = [(at, ("pass", last[2]))]


def _merged(first: Word, second: Word) -> Word:
    """Add up what two stores, or two flushes, brought; the last offset counts."""
    if second[1] is None:
        return first[0] + second[0], first[1], first[2] + second[2]
    return sum(first[::2]) + second[0], second[1], second[2]


def histories(trace: Path, era: Era) -> dict[str, History]:
    """Read all tasks of one pod."""
    disk, alive = MemoryDisk(), None
    found: dict[str, History] = {}
    exits = [b'"exit"' in line for line in gzip.decompress(trace.read_bytes()).splitlines()]
    for by_exit, operation in zip(exits, read_trace(trace), strict=True):
        if operation.op == "start":
            alive = operation.at_us / 1e6
        disk.apply(operation)
        match = IN_TASK.match(operation.path)
        at = operation.at_us / 1e6
        if operation.op in ("start", "exit"):
            for one in found.values():
                _process(one, disk, at, operation.op)
            alive = None if operation.op == "exit" else alive
        elif match is not None and not operation.nameless:
            task = match[1]
            if task not in found:
                found[task] = History(task, old=era.old, opens_twice=era.old and era.opens_twice)
                if alive is not None:
                    found[task].says(alive, "start")
            if operation.op in ("lock", "unlock"):
                if not by_exit:
                    _lock(found[task], at, operation.op, match[2] or "")
            else:
                _file(found[task], disk, at, operation.op, match[2] or "", operation.to)
    return found


def _process(one: History, disk: MemoryDisk, at: float, op: str) -> None:
    """A process starts or ends; one that ends and holds the store is as good as killed."""
    if (
        one.words
        and one.words[-1][1] == ("rm",)
        and not isinstance(disk.stat(f"{one.task}/.checkpoint"), Unseen)
    ):
        one.words[-1] = (at, ("torn",))
    one.released = True
    one.says(at, "start" if op == "start" else "kill" if one.held else "exit")
    one.held.clear()


def _lock(one: History, at: float, op: str, name: str) -> None:
    folder, _, last = name.rpartition("/")
    if name == ".lock" and op == "unlock":
        one.lets_go()
    if last != "LOCK":
        return
    if op == "lock":
        if not one.held:
            one.says(at, "open", False)
            one.released = False
        one.held.add(folder)
        one.stores.add(folder)
    else:
        one.held.discard(folder)
        if not one.held:
            one.says(at, *(NOTHING if one.in_store else ("shut", 0)))


def _file(one: History, disk: MemoryDisk, at: float, op: str, name: str, to: str) -> None:
    folder, _, last = name.rpartition("/")
    if op == "write" and last.startswith("MANIFEST-"):
        _flush(one, disk, at, folder)
    elif op == "rename" and to.endswith("/CURRENT") and one.old:
        _flush(one, disk, at, folder)  # a first flush writes a new manifest, and has it take effect
    elif op == "rename" and to.endswith("/.checkpoint"):
        one.says(at, "ckpt", _offset(disk, one), 0)
    elif op == "rename" and to.endswith("/IDENTITY"):
        one.puts[folder] = 0
        one.is_new = True
    elif op == "unlink" and name == ".checkpoint":
        if not (
            one.words and one.words[-1][1] in (("rm",), ("torn",)) and at - one.words[-1][0] < LONG_WALK_S
        ):
            one.says(at, "delck")
    elif op == "unlink" and last == "CURRENT" and folder not in one.held:
        one.says(at, "torn")
    elif op == "rmdir" and name in ("rocksdb", ""):
        while (
            one.words and one.words[-1][1] in (("delck",), ("torn",)) and at - one.words[-1][0] < LONG_WALK_S
        ):
            del one.words[-1]
        one.puts.clear()
        one.offsets.clear()
        one.says(at, "rm")


def _flush(one: History, disk: MemoryDisk, at: float, folder: str) -> None:
    view = read_manifest(disk, f"{one.task}/{folder}", one.manifests)
    if not isinstance(view, ManifestView):
        return
    before = one.puts.setdefault(folder, 0)
    puts = max(view.flushed_sequence - before, 0)
    one.puts[folder] = before + puts
    if any(name == "offsets" for _, name in view.families):
        one.in_store = True
        _flush_with_offset(one, disk, at, folder, puts)
    elif puts:
        one.says(at, "flush", puts)


def _flush_with_offset(one: History, disk: MemoryDisk, at: float, folder: str, puts: int) -> None:
    facts = read_store(disk, f"{one.task}/{folder}", one.cache, one.manifests, with_counters=False)
    if not isinstance(facts, StoreFacts) or facts.offsets is None:
        return
    known, known_at, known_status = one.offsets.get(folder, (UNKNOWN, 0, 0))
    written_at = max((x.sequence for _, x in facts.offsets.offsets), default=0)
    status = facts.offsets.status.sequence if facts.offsets.status else 0
    offset: int | None = None
    if written_at > known_at:
        known_at, known = written_at, sum(x.value for _, x in facts.offsets.offsets)
        offset = known
    elif facts.offsets.removed_sequence > known_at and not facts.offsets.offsets:
        known_at, known, offset = facts.offsets.removed_sequence, GONE, GONE
    elif not puts and status <= known_status:
        return
    one.offsets[folder] = (known, known_at, status)
    late = min(max(one.puts[folder] - known_at, 0), puts) if offset is not None else 0
    one.closing = offset == GONE or bool(facts.offsets.status and facts.offsets.status.value == 0)
    every = [x for x, _, _ in one.offsets.values() if x >= 0]
    one.says(at, "flush", puts - late, offset if offset in (None, GONE, UNKNOWN) else sum(every), late)


def _offset(disk: MemoryDisk, one: History) -> int:
    """Add up the entries: the rule of 10,000 does so, too. Some releases add those of other tasks (KAFKA-5998)."""
    content = disk.read_at(f"{one.task}/.checkpoint", 0, 1 << 20)
    assert isinstance(content, bytes)
    partition = int(one.task.rpartition("_")[2])
    known = [x.offset for x in parse_checkpoint(content) if x.offset >= 0 and x.partition == partition]
    return sum(known) if known else UNKNOWN
