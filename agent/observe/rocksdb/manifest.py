"""The MANIFEST of a database: which SST files are live, and how far data was ever flushed."""

from __future__ import annotations

from agent.inventory.disk import Files, FileStat, Unseen
from agent.layout import names
from agent.layout.rocksdb_text import MAX_CURRENT_BYTES, parse_current
from agent.observe.rocksdb.coding import DamagedError, Unread, UnsupportedError
from agent.observe.rocksdb.log_records import End, LogContent, read_records
from agent.observe.rocksdb.replay import ManifestView, Replay, manifest_name
from agent.observe.rocksdb.version_edit import parse_edit

BYTES_PER_READING = 1 << 20
"""Replay no more of one manifest in one reading, a third of a second's work; a longer one is read on at the next
reading. RocksDB begins a new one at every open and beyond 1 GiB (`max_manifest_file_size`): a busy process does."""

READ_AT_ONCE = 2
"""So many long manifests are read side by side; others wait, so that memory and work stay bounded."""

CACHED_MANIFESTS = 512
"""Default bound of their number; that of a small store takes 2 KB in memory."""

CACHED_MANIFEST_BYTES = 2 << 20
"""Default bound of what is kept of them, all together, in the bytes that it takes on disk; in memory it is up to six
times that."""

_PIECE_BYTES = 256 << 10
_MAX_RECORD_BYTES = 8 << 20
"""A record is one version edit; the snapshot of a store with 10,000 files has 2 MB."""
_ANCHOR_BYTES = 512
_LONG_BYTES = 1 << 20
_MAX_NUMBER = (1 << 62) - 1
_TRIES = 5


def read_manifest(disk: Files, database: str, cache: ManifestCache | None = None) -> ManifestView | Unread:
    """Read the current manifest of a database.

    On RocksDB 5.7 and 5.14 (Kafka Streams 2.0, 2.1) the first flush of a new store shows only in the snapshot that the
    next manifest begins with. Without a cache a manifest is read whole, with one from where the last call ended.

    Returns:
        The view. Else Unseen.RACED if a writer replaced it during every try; Unseen.VANISHED if there is no
        database, or, with a problem, `CURRENT` names a manifest that is not there; Unseen.UNREADABLE if `CURRENT`
        is garbage; Unseen.TOO_LARGE if the next call reads on.
    """
    outcome: ManifestView | Unread = Unread(Unseen.RACED)
    path = f"{database}/{names.CURRENT_FILE}"
    stat, named = disk.stat(path), _current(disk, path)
    for _ in range(_TRIES):
        if isinstance(named, Unread):
            return named
        previous = outcome
        outcome = _read(disk, database, named, cache)
        before, named_by, stat = named, stat, disk.stat(path)
        if stat != named_by:
            named = _current(disk, path)
        if named != before:
            outcome = Unread(Unseen.RACED)
        elif not _may_be_passing(outcome) or outcome == previous:
            return outcome
    return outcome


def _may_be_passing(outcome: ManifestView | Unread) -> bool:
    """A missing or torn manifest is believed only at a second reading: a writer may be at work."""
    return outcome.unseen is Unseen.VANISHED if isinstance(outcome, Unread) else outcome.torn


def parse_manifest(content: bytes, number: int) -> ManifestView:
    """Replay a manifest; total: damage ends the replay and is reported by `torn`."""
    known = Replayed(number)
    return known.replay.view(number, known.apply(read_records(content), content), known.end)


def _current(disk: Files, path: str) -> int | Unread:
    content = disk.read_at(path, 0, MAX_CURRENT_BYTES)
    if isinstance(content, Unseen):
        return Unread(content, "" if content is Unseen.VANISHED else f"CURRENT: {content}")
    number = parse_current(content)
    if number is None or number > _MAX_NUMBER or not content.endswith(b"\n"):
        return Unread(Unseen.UNREADABLE, "CURRENT: corrupt: it names no manifest")
    return number


def _read(disk: Files, database: str, number: int, cache: ManifestCache | None) -> ManifestView | Unread:
    name = manifest_name(number)
    path = f"{database}/{name}"
    if cache is None:
        return _read_on(disk, path, number, Replayed(number), None)
    stat = disk.stat(path)
    if isinstance(stat, Unseen):
        return _unread(name, stat)
    known = cache.remove(database)
    if known is None or known.number != number:
        return _go_on(disk, database, number, stat, Replayed(number), cache)
    if known.stat == stat and known.view is not None:
        cache.put(database, known)
        return known.view
    with disk.stay_on(path):
        if not known.is_started_by(disk, path, stat):
            known = Replayed(number)
        return _go_on(disk, database, number, stat, known, cache)


def _go_on(
    disk: Files, database: str, number: int, stat: FileStat, known: Replayed, cache: ManifestCache
) -> ManifestView | Unread:
    """Replay what follows what is known, unless it is much and others are at it; remember it."""
    name = manifest_name(number)
    if stat.size_bytes - known.end > BYTES_PER_READING and not known.is_half_read and cache.is_busy:
        if known.end:
            cache.put(database, known)
        return _too_long(name, waits=True)
    known.view = known.stat = None
    outcome = _read_on(disk, f"{database}/{name}", number, known, BYTES_PER_READING)
    if isinstance(outcome, ManifestView):
        known.view = outcome
        known.stat = stat if not outcome.torn and known.end == stat.size_bytes else None
    if isinstance(outcome, ManifestView) or outcome.unseen is Unseen.TOO_LARGE:
        cache.put(database, known)
    return outcome


def _too_long(name: str, *, waits: bool) -> Unread:
    what = "waits for others to be read" if waits else "more than one reading takes in, the rest follows"
    return Unread(Unseen.TOO_LARGE, f"{name}: {Unseen.TOO_LARGE}: {what}", goes_on=True, waits=waits)


def _read_on(disk: Files, path: str, number: int, known: Replayed, most: int | None) -> ManifestView | Unread:
    """Replay what follows the last known record, piece by piece."""
    length, began = _PIECE_BYTES, known.end
    while True:
        at = known.end
        piece = disk.read_at(path, at, length)
        if isinstance(piece, Unseen):
            return _unread(manifest_name(number), piece)
        log = read_records(piece, base=at)
        ending = known.apply(log, piece)
        if len(piece) < length or ending in (End.CORRUPT, End.UNSUPPORTED):
            return known.replay.view(number, ending, known.end)
        if known.end > at:
            length = _PIECE_BYTES
        elif log.has_rest:
            ending = _rest(disk, path, at + len(piece)) if ending is End.WHOLE else ending
            return known.replay.view(number, ending, known.end)
        elif length >= _MAX_RECORD_BYTES:
            return known.replay.view(number, End.UNSUPPORTED, known.end)
        else:
            length *= 2
        if most is not None and known.end - began >= most:
            return _too_long(manifest_name(number), waits=False)


def _rest(disk: Files, path: str, at: int) -> End:
    """Return whether nothing but zeros follows in a file that was made long in advance."""
    while True:
        piece = disk.read_at(path, at, _PIECE_BYTES)
        if isinstance(piece, Unseen) or any(piece):
            return End.CORRUPT
        at += len(piece)
        if len(piece) < _PIECE_BYTES:
            return End.WHOLE


def _unread(name: str, unseen: Unseen) -> Unread:
    if unseen is Unseen.VANISHED:
        return Unread(unseen, f"{name}: gone: CURRENT names it, and it is not there")
    return Unread(unseen, f"{name}: {unseen}")


class Replayed:
    """A manifest as far as it was replayed.

    Attributes:
        number: Number of the manifest.
        stat: What the file was like before it was read; None = there may be more to read (a preallocated file that is
            written through memory is filled in without growing).
        end: Offset behind the last record.
        replay: State after the last record.
        view: What it says; None = it was not read to its end yet.
    """

    __slots__ = ("_head", "_tail", "end", "number", "replay", "stat", "view")

    def __init__(self, number: int) -> None:
        """Begin with an empty file."""
        self.number = number
        self.stat: FileStat | None = None
        self.end = 0
        self.replay = Replay()
        self.view: ManifestView | None = None
        self._head = self._tail = b""

    @property
    def is_half_read(self) -> bool:
        """Whether the next reading reads on, and its end has not been read yet."""
        return self.view is None and self.end > 0

    @property
    def size_bytes(self) -> int:
        """How much of it is kept."""
        return min(self.end, self.replay.size_bytes)

    def apply(self, log: LogContent, piece: bytes) -> End:
        """Replay records that follow, which `piece` (from `end` on) holds; how they end."""
        began, ending = self.end, log.ending
        for record, end in zip(log.records, log.ends, strict=True):
            try:
                self.replay.apply(parse_edit(record))
            except (DamagedError, UnsupportedError):
                ending = End.UNSUPPORTED
                break
            self.end = end
        taken = piece[: self.end - began]
        if len(self._head) < _ANCHOR_BYTES and began == len(self._head):
            self._head += taken[: _ANCHOR_BYTES - began]
        self._tail = (self._tail + taken[-_ANCHOR_BYTES:])[-_ANCHOR_BYTES:]
        return ending

    def is_started_by(self, disk: Files, path: str, stat: FileStat) -> bool:
        """Return whether the file still begins with what was replayed.

        RocksDB only appends, but a store recreated may begin a file of the same name, inode and size.
        """
        head = disk.read_at(path, 0, len(self._head))
        at = self.end - len(self._tail)
        tail = disk.read_at(path, at, len(self._tail)) if at else head
        return stat.size_bytes >= self.end and (head, tail) == (self._head, self._tail)


class ManifestCache:
    """A bounded memory of replayed manifests: an unchanged one is not read, a longer one only continued."""

    def __init__(self, limit: int = CACHED_MANIFESTS, limit_bytes: int = CACHED_MANIFEST_BYTES) -> None:
        """Keep at most `limit` manifests of `limit_bytes`.

        What was not used for longest goes first, and of what was expensive to read the last.
        """
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._known: dict[str, tuple[Replayed, int]] = {}

    def __len__(self) -> int:
        """Count the manifests it knows."""
        return len(self._known)

    @property
    def is_busy(self) -> bool:
        """Whether no more long ones may be started."""
        return sum(known.is_half_read for known, _ in self._known.values()) >= READ_AT_ONCE

    def remove(self, database: str) -> Replayed | None:
        """Find a database's manifest and remove it: what is replayed further changes."""
        known = self._known.pop(database, None)
        if known is None:
            return None
        self._bytes -= known[1]
        return known[0]

    def put(self, database: str, known: Replayed) -> None:
        """Remember a manifest."""
        self.remove(database)
        size_bytes = known.size_bytes
        self._known[database] = (known, size_bytes)
        self._bytes += size_bytes
        while len(self._known) > self._limit or self._bytes > self._limit_bytes:
            oldest = self._first(_LONG_BYTES) or self._first(_MAX_NUMBER)
            if oldest is None:
                return
            self.remove(oldest)

    def _first(self, below_bytes: int) -> str | None:
        """Find the first database in it whose manifest was read to its end, and is shorter than this."""
        return next(
            (x for x, (one, _) in self._known.items() if not one.is_half_read and one.end < below_bytes), None
        )
