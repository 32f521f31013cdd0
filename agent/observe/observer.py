"""Read one place through a `Disk` and say what is there now. The only maker of observations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.contract.events import Source
from agent.errors import CheckpointFormatError, ProcessFileError
from agent.inventory.copied import dated
from agent.inventory.disk import Disk, EntryKind, FileStat, LockState, Unseen
from agent.inventory.observations import (
    ApplicationReading,
    CheckpointReading,
    DatabaseReading,
    LaterFile,
    LockReading,
    TaskReading,
)
from agent.layout import names
from agent.layout.checkpoint import MAX_CHECKPOINT_BYTES, parse_checkpoint
from agent.layout.paths import PathRole, StatePath
from agent.layout.process_file import MAX_PROCESS_FILE_BYTES, parse_process_file
from agent.layout.rocksdb_text import (
    MAX_IDENTITY_BYTES,
    MAX_OPTIONS_BYTES,
    OptionsFacts,
    old_log_times_us,
    parse_identity,
    parse_options,
)
from agent.layout.shape import is_application, leftovers
from agent.layout.sharing import shared
from agent.observe.content import of_content, of_unread
from agent.observe.rocksdb.cache import SstCache
from agent.observe.rocksdb.coding import Unread
from agent.observe.rocksdb.later import later_file
from agent.observe.rocksdb.manifest import ManifestCache
from agent.observe.rocksdb.replay import ManifestView
from agent.observe.rocksdb.store import StoreFacts, read_store

WRITTEN_KEPT = 64
"""Announced SST files per store whose time is remembered, the newest: far more than come between two readings."""

ANNOUNCED_FOR_US = 60_000_000
"""And for how long after a reading. A flush is in the manifest within milliseconds of its file, and reported at the
first reading that finds it there; what takes longer comes out of a compaction, or is foreign."""

_NO_OPTIONS = OptionsFacts(None, ())

TRIES = 5
"""Readings of a store that is recreated during every one of them."""


@dataclass(slots=True)
class _Known:
    """What need not be read twice, and when SST files were announced (None = none was)."""

    identity: str = ""
    announced_us: dict[int, int] | None = None
    options_name: str = ""
    options: OptionsFacts | None = None
    options_written_us: int = 0
    identity_heard_us: int = 0  # when it was announced last
    options_heard_us: int = 0

    def note_written(self, number: int, at_us: int) -> None:
        """Remember an announcement, and forget the oldest file's if there are too many."""
        if self.announced_us is None:
            self.announced_us = {}
        self.announced_us.setdefault(number, at_us)
        if len(self.announced_us) > WRITTEN_KEPT:
            del self.announced_us[min(self.announced_us)]

    def cap_announcements(self, at_us: int) -> None:
        """Date what was announced so far to `at_us` at the latest, unless that is the time of an old file put back."""
        announced_us = self.announced_us or {}
        for number, found_us in announced_us.items():
            if at_us < found_us <= at_us + ANNOUNCED_FOR_US:
                announced_us[number] = at_us

    def forget_announcements(self, at_us: int) -> None:
        """Forget what a reading has had its chance to find."""
        if self.announced_us is not None:
            since_us = at_us - ANNOUNCED_FOR_US
            recent = {
                number: found_us for number, found_us in self.announced_us.items() if found_us > since_us
            }
            self.announced_us = recent or None


class Observer:
    """Makes observations of one state directory."""

    def __init__(self, disk: Disk) -> None:
        """Read through `disk`."""
        self.disk = disk
        self._known: dict[str, _Known] = {}
        self._files = SstCache()
        self._manifests = ManifestCache()
        self._with_counters = True
        self.ahead_us = 0  # by so much the clock that file times come from is ahead of this node's

    def set_detail(self, *, with_counters: bool) -> None:
        """Read the counters of data files, or (cheaper) not; then live entries are unknown. Empties the caches."""
        self._with_counters = with_counters
        self._files = SstCache()
        self._manifests = ManifestCache()

    def application(self, place: StatePath, at_us: int, source: Source) -> ApplicationReading:
        """Read an application directory, its lock and its process metadata. What has no sign of one, is none."""
        stat = self._stat_directory(place.path)
        if isinstance(stat, Unseen):
            return ApplicationReading(place, at_us, source, stat)
        process_id, hidden, malformed = self._process_id(f"{place.path}/{names.PROCESS_FILE}")
        lock, inode = self._lock(f"{place.path}/{names.LOCK_FILE}")
        if lock not in (LockState.HELD, LockState.FREE) and not process_id:
            entries = self.disk.list(place.path)
            if isinstance(entries, Unseen) or not is_application({entry.name for entry in entries}):
                unseen = entries if isinstance(entries, Unseen) else Unseen.VANISHED
                return ApplicationReading(place, at_us, source, unseen)
        return ApplicationReading(
            place,
            at_us,
            source,
            inode=stat.inode,
            mtime_us=stat.mtime_us,
            process_id=process_id,
            process_hidden=hidden,
            process_problem=malformed,
            lock=lock,
            lock_inode=inode,
            processes=tuple(x for x in self.disk.processes() if x.works_on(place.path)),
        )

    def _stat_directory(self, path: str) -> FileStat | Unseen:
        """Stat a directory: a file of its name is not it, and a link may be."""
        stat = self.disk.stat(path)
        if isinstance(stat, Unseen) or stat.kind is EntryKind.DIRECTORY:
            return stat
        return Unseen.UNREADABLE if stat.kind is EntryKind.SYMLINK else Unseen.VANISHED

    def task(self, place: StatePath, at_us: int, source: Source) -> TaskReading:
        """Read a task directory: identity, children, lock."""
        stat = self._stat_directory(place.path)
        if isinstance(stat, Unseen):
            return TaskReading(place, at_us, source, stat)
        entries = self.disk.list(place.path)
        if isinstance(entries, Unseen):
            return TaskReading(place, at_us, source, entries)
        children = shared(frozenset(entry.name for entry in entries))
        lock = None
        if names.LOCK_FILE in children:
            lock = self.ask_lock(f"{place.path}/{names.LOCK_FILE}")
        return TaskReading(
            place, at_us, source, None, stat.inode, stat.mtime_us - self.ahead_us, children, lock
        )

    def lock(self, place: StatePath, at_us: int, source: Source, *, announced: bool = False) -> LockReading:
        """Ask who holds a lock file; `announced` = a notification said that it was closed."""
        lock, inode = self._lock(place.path)
        return LockReading(place, at_us, source, None, lock, inode, announced)

    def ask_lock(self, path: str) -> LockState | None:
        """Ask who holds a lock file and nothing else, at half the cost of `lock`; None = it is not there."""
        state = self.disk.lock_state(path)
        if state is Unseen.VANISHED:
            return None
        return LockState.UNKNOWN if isinstance(state, Unseen) else state

    def identity(self, path: str) -> str | None:
        """Read a database's IDENTITY and nothing else; None = there is none."""
        return self._identity(path)[0]

    def written_us(self, path: str) -> int | None:
        """Return when a file was written; None = it is not there, or cannot be seen."""
        stat = self.disk.stat(path)
        return None if isinstance(stat, Unseen) else stat.mtime_us - self.ahead_us

    def checkpoint(
        self, place: StatePath, at_us: int, source: Source, *, heard_us: int = 0
    ) -> CheckpointReading:
        """Read a checkpoint file; `heard_us`: when it was announced, if this reading is for that."""
        found = self.disk.read_dated(place.path, MAX_CHECKPOINT_BYTES)
        if isinstance(found, Unseen):
            return CheckpointReading(place, at_us, source, found)
        stat, content = found
        mtime_us = dated(stat.mtime_us - self.ahead_us, heard_us)
        if stat.size_bytes > MAX_CHECKPOINT_BYTES:
            return CheckpointReading(
                place,
                at_us,
                source,
                mtime_us=mtime_us,
                problem=f"{stat.size_bytes} bytes, more than the {MAX_CHECKPOINT_BYTES} that are read",
            )
        try:
            entries = parse_checkpoint(content)
        except CheckpointFormatError as error:
            return CheckpointReading(place, at_us, source, mtime_us=mtime_us, problem=str(error))
        return CheckpointReading(place, at_us, source, None, mtime_us, entries)

    def database(
        self, place: StatePath, at_us: int, source: Source, *, announced_us: int = 0
    ) -> DatabaseReading:
        """Read a RocksDB directory: incarnation, manifest, lock, history of opens."""
        for _ in range(TRIES):
            with self.disk.stay_in(place.path):
                reading = self._database(place, at_us, source, announced_us)
            if reading.unseen is not None or (reading.identity is not None and not reading.unnamed):
                return reading
            if self._identity(place.path)[0] is None:
                return reading
            # recreated during the reading: what was read belongs to no single incarnation
        return DatabaseReading(place, at_us, source, Unseen.RACED, announced_us=announced_us)

    def _database(self, place: StatePath, at_us: int, source: Source, announced_us: int) -> DatabaseReading:
        path = place.path
        stat = self._stat_directory(path)
        if isinstance(stat, Unseen):
            self._known.pop(path, None)
            self._manifests.remove(path)
            return DatabaseReading(place, at_us, source, stat, announced_us=announced_us)
        entries = self.disk.list(path)
        if isinstance(entries, Unseen):
            return DatabaseReading(place, at_us, source, entries)
        found = [entry.name for entry in entries]
        identity, born_us, hidden = self._identity(path)
        lock = self.ask_lock(f"{path}/{names.STORE_LOCK_FILE}")
        known = self._known_of(path, identity)
        identity = identity and known.identity  # one object of both
        hidden += self._read_options(path, found, known)
        options = known.options or _NO_OPTIONS
        kept = options.old_logs_kept
        reopened_us = () if kept == 0 else old_log_times_us(found)
        facts = read_store(
            self.disk,
            path,
            self._files,
            self._manifests,
            with_counters=self._with_counters,
            # a process that holds it has read them, and one that was just closed is not to wait
            with_checks=lock is not LockState.HELD and source is not Source.INOTIFY,
        )
        unnamed = (
            identity is None
            and isinstance(facts, StoreFacts)
            and facts.manifest.number != names.FIRST_MANIFEST
        )
        if unnamed and isinstance(facts, StoreFacts):
            identity, born_us = self._substitute(path, stat, facts.manifest), 0
        if isinstance(facts, Unread):
            content = of_unread(facts)
        else:
            content = of_content(facts, known.announced_us or {}, self.ahead_us)
            known.forget_announcements(at_us)
        content["problems"] = (*hidden, *content["problems"])
        if isinstance(facts, StoreFacts) and lock is not LockState.HELD:
            opened_us = max(reopened_us, default=0) + self.ahead_us
            later, unread = later_file(self.disk, path, found, facts.manifest, opened_us)
            content["problems"] += tuple(unread)
            if later is not None:
                content["later"] = LaterFile(later[1], later[0] - self.ahead_us, at_us)
        left = leftovers(found, identity)
        may_grow = found if left or content.get("missing_files") else []
        return DatabaseReading(
            place,
            at_us,
            source,
            inode=stat.inode,
            touched_us=max(stat.mtime_us, *self._data_times(path, may_grow), 0) - self.ahead_us,
            identity=identity,
            identity_born_us=dated(born_us, known.identity_heard_us),
            unnamed=unnamed,
            lock=lock,
            reopened_us=reopened_us,
            all_reopens=kept is None or len(reopened_us) < kept,
            rocksdb_version=options.rocksdb_version,
            families=options.column_families,
            forgets=options.forgets,
            bulk_loading=options.bulk_loading,
            options_written_us=known.options_written_us and known.options_written_us - self.ahead_us,
            announced_us=announced_us,
            leftovers=left,
            **content,
        )

    def note_written(self, place: StatePath, at_us: int) -> None:
        """Remember when a file was announced as written: an SST may be compacted away before it is read."""
        if place.database is None:
            return
        if (known := self._known.get(place.database)) is None:
            known = self._known[place.database] = _Known()
        if place.role is PathRole.IDENTITY:
            known.identity_heard_us = at_us
        elif place.role is PathRole.OPTIONS:
            known.options_heard_us = at_us
        elif match := names.SST_FILE.fullmatch(place.name):
            known.note_written(int(match[1]), at_us)

    def note_checkpoint(self, databases: Iterable[str], written_us: int) -> None:
        """Learn that a checkpoint was renamed after all that has been announced of its task's databases.

        The kernel keeps the order, but an announcement has the time at which it was read: an agent short of CPU
        reads it late, after the time of the checkpoint's file, and the flush would seem to have come later.
        """
        for path in databases:
            if (known := self._known.get(path)) is not None and known.announced_us:
                known.cap_announcements(written_us)

    def _known_of(self, path: str, identity: str | None) -> _Known:
        known = self._known.get(path)
        if known is None or (identity is not None and known.identity not in ("", identity)):
            heard_us = (known.identity_heard_us, known.options_heard_us) if known is not None else (0, 0)
            known = self._known[path] = _Known()
            known.identity_heard_us, known.options_heard_us = heard_us
        known.identity = known.identity or identity or ""
        return known

    def _data_times(self, path: str, entries: list[str]) -> Iterator[int]:
        """List when data files were written to last: one that is being copied grows long after it got its name.

        A temporary name of `rsync` counts, too.
        """
        for name in entries:
            if names.SST_FILE.search(name) or names.BLOB_FILE.search(name):
                stat = self.disk.stat(f"{path}/{name}")
                if not isinstance(stat, Unseen):
                    yield stat.mtime_us

    def _read_options(self, path: str, entries: list[str], known: _Known) -> tuple[str, ...]:
        """Read the newest OPTIONS once; returns why it could not be read, if it is there."""
        options = [x for x in entries if x.startswith("OPTIONS-")]
        found = [(int(m[1]), m[0]) for x in options if (m := names.OPTIONS_FILE.fullmatch(x))]
        name = max(found)[1] if found else known.options_name
        if name == known.options_name:
            return ()
        content = self.disk.read_at(f"{path}/{name}", 0, MAX_OPTIONS_BYTES)  # a longer one is read in part
        stat = self.disk.stat(f"{path}/{name}")
        if isinstance(content, Unseen) or isinstance(stat, Unseen):
            return (f"{name}: {content}",) if content in (Unseen.DENIED, Unseen.UNREADABLE) else ()
        known.options_name, known.options = shared(name), parse_options(content)
        heard_us = known.options_heard_us + self.ahead_us if known.options_heard_us else 0
        known.options_written_us = dated(stat.mtime_us, heard_us)
        return ()

    def _substitute(self, path: str, stat: FileStat, manifest: ManifestView) -> str:
        """Name a database without IDENTITY: CURRENT and the manifest make it one, and RocksDB opens it.

        Until then the manifest stays the current one, so its number and time, with the inode, are of no other database.

        Source:
            DBImpl::SetupDBId writes a missing or empty IDENTITY, from the manifest if that has the id (9 and later);
            `write_identity_file` (9.7 and later) leaves the file out on purpose.
        """
        if manifest.database_id is not None:
            return manifest.database_id
        current = self.written_us(f"{path}/{names.CURRENT_FILE}")
        return f"unnamed-{stat.inode}-{manifest.number}-{current or 0}"

    def _identity(self, path: str) -> tuple[str | None, int, tuple[str, ...]]:
        """Read IDENTITY: content, when it was written, and why it could not be read, if it is there."""
        found = self.disk.read_dated(f"{path}/{names.IDENTITY_FILE}", MAX_IDENTITY_BYTES)
        if isinstance(found, Unseen):
            hidden = found in (Unseen.DENIED, Unseen.UNREADABLE)
            return None, 0, (f"{names.IDENTITY_FILE}: {found}",) if hidden else ()
        stat, content = found
        if stat.size_bytes > MAX_IDENTITY_BYTES:  # damaged: its beginning may name the store all the same
            start = self.disk.read_at(f"{path}/{names.IDENTITY_FILE}", 0, MAX_IDENTITY_BYTES)
            content = b"" if isinstance(start, Unseen) else start
        return parse_identity(content), stat.mtime_us - self.ahead_us, ()

    def _lock(self, path: str) -> tuple[LockState | None, int]:
        state = self.ask_lock(path)
        if state is None or state is LockState.UNKNOWN:
            return state, 0
        stat = self.disk.stat(path)
        return state, 0 if isinstance(stat, Unseen) else stat.inode

    def _process_id(self, path: str) -> tuple[str | None, Unseen | None, str | None]:
        """Read the process id; else why the file could not be read, or what is wrong in it."""
        content = self.disk.read_at(path, 0, MAX_PROCESS_FILE_BYTES)
        if isinstance(content, Unseen) or not content:
            return None, content if content in (Unseen.DENIED, Unseen.UNREADABLE) else None, None
        try:
            return parse_process_file(content), None, None
        except ProcessFileError as error:
            return None, None, str(error)
