"""One RocksDB directory in a scenario: writes what RocksDB writes, in its order, with real manifests and SSTs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support import rocksdb_writer as writer
from tests.support.scenario_release import Habits
from tests.support.scenario_world import World
from tests.support.table_writer import sst

OFFSETS_FAMILY_ID = 2
TIMESTAMPED_FAMILY_ID = 1
UNKNOWN = -4


@dataclass(slots=True)
class DataFile:
    """An SST file that the manifest names."""

    number: int
    family: int
    sequence: int
    size: int
    entries: int
    level: int = 0
    oldest_us: int = 0


@dataclass(slots=True)
class SimDatabase:
    """One database; `path` is its directory.

    `puts` wait in the memtable until `flush` or `close`; a crash loses them.
    """

    world: World
    habits: Habits
    path: str
    identity: str
    timestamped: bool = False
    files: list[DataFile] = field(default_factory=list)
    is_open: bool = False
    bulk_loading: bool = False
    _next_file: int = 0
    _sequence: int = 0
    _data_sequence: int = 0
    _manifest: int = 0
    _manifest_logged: int = 0
    _options: int = 0
    _wal: int = 0
    _fresh_manifest: bool = False
    _waiting: int = 0
    _deletions: int = 0
    _entries: dict[bytes, tuple[int, bytes | None]] = field(default_factory=dict)

    # -- opening and closing ----------------------------------------------------------------------------

    def open(self) -> None:
        """Open for writing, as a new database where there is no CURRENT."""
        world = self.world
        world.mkdir(self.path)
        self._rotate_log()
        world.lock(f"{self.path}/LOCK")
        if world.has(f"{self.path}/CURRENT"):
            self._reopen()
        else:
            self._make()
        self.is_open = True
        if self.habits.writes_status:
            self._put_long(b"status", 1)

    def _rotate_log(self) -> None:
        log = f"{self.path}/LOG"
        if self.world.has(log):
            self.world.play("rename", log, to=f"{log}.old.{self.world.now_us}")
        self.world.play("create", log)
        self.world.play("open_w", log)

    def _make(self) -> None:
        keeps = self.world.has(f"{self.path}/IDENTITY") and not self.habits.new_identity_for_new_database
        leftovers = [name for name, _ in self.world.children(self.path) if name.endswith((".sst", ".log"))]
        self.files, self._sequence, self._waiting, self._next_file = [], 0, 0, 2
        self._entries.clear()
        self._start_manifest(1)
        if not keeps:
            self.world.replace(
                f"{self.path}/IDENTITY", f"{self.identity}\n".encode(), f"{self.path}/000000.dbtmp"
            )
        self._wal = self._number()
        self.world.write(f"{self.path}/{self._wal:06d}.log", b"")
        self._write_options()
        self._fresh_manifest = self.habits.late_manifest
        if not self.habits.late_manifest:
            self._start_manifest(self._number())
        for name in leftovers:
            self.world.play("unlink", f"{self.path}/{name}")

    def _reopen(self) -> None:
        self._fresh_manifest = False
        self._start_manifest(self._number())
        old, self._wal = self._wal, self._number()
        self.world.write(f"{self.path}/{self._wal:06d}.log", b"")
        self._write_options()
        self.world.play("unlink", f"{self.path}/{old:06d}.log")

    def close(self) -> None:
        """Flush what waits and let go."""
        self.flush()
        self.world.unlock(f"{self.path}/LOCK")
        self.is_open = False

    def refuse(self) -> None:
        """4.3+: RocksDB opens it, Kafka Streams refuses it for its status: it is let go with nothing written."""
        self.open()
        self.crash()
        self.world.unlock(f"{self.path}/LOCK")

    def crash(self) -> None:
        """The process is gone: what was not flushed is lost."""
        self._waiting, self._sequence = 0, self._manifest_logged
        self._entries.clear()
        self.is_open = False

    # -- data -------------------------------------------------------------------------------------------

    def put(self, count: int, *, deletions: int = 0) -> None:
        """Write records into the memtable."""
        assert self.is_open, f"{self.path} is not open"
        self._waiting += count
        self._deletions += deletions
        self._sequence += count
        self._data_sequence = self._sequence

    def put_offset(self, topic_partition: str, offset: int) -> None:
        """4.3+: put a changelog offset into the `offsets` family."""
        self._put_long(topic_partition.encode(), offset)

    def drop_offset(self, topic_partition: str) -> None:
        """4.3+: remove a changelog offset, as a corrupted task does under at-least-once."""
        self._put(topic_partition.encode(), None)

    def put_position(self) -> None:
        """4.3+: put an empty position."""
        self._put(b"position", bytes(5))

    def put_status(self, status: int) -> None:
        """4.3+: put the open/closed marker; transactional stores have none."""
        if self.habits.writes_status:
            self._put_long(b"status", status)

    def _put_long(self, key: bytes, value: int) -> None:
        self._put(key, value.to_bytes(8, "big", signed=True))

    def _put(self, key: bytes, value: bytes | None) -> None:
        self._sequence += 1
        self._entries[key] = (self._sequence, value)

    def flush(self) -> None:
        """Write the memtables to SST files and name them in the manifest."""
        parts: list[bytes] = []
        if self._waiting:
            family = TIMESTAMPED_FAMILY_ID if self.timestamped else 0
            content = sst(
                entries=self._waiting, deletions=self._deletions, oldest_us=self.world.now_us, is_flushed=True
            )
            one = self._write_sst(content, family, self._data_sequence, self._waiting)
            parts.append(self._added(one))
        if self._entries:
            items = [(key, sequence, value) for key, (sequence, value) in self._entries.items()]
            highest = max(sequence for _, sequence, _ in items)
            one = self._write_sst(
                sst(items, oldest_us=self.world.now_us, is_flushed=True),
                OFFSETS_FAMILY_ID,
                highest,
                len(items),
            )
            parts.append(self._added(one))
        self._waiting = self._deletions = 0
        self._entries.clear()
        if not parts:
            return
        if self._fresh_manifest:
            self._fresh_manifest = False
            self._start_manifest(self._number())
            return
        counters = writer.counters(self._next_file, self._sequence)
        left = len(parts) - 1
        grouped = [
            part + counters + (writer.in_group(left - index) if left else b"")
            for index, part in enumerate(parts)
        ]
        self._append(grouped)

    def compact(self) -> None:
        """Merge all data files into one; order is forgotten: its sequence numbers are zero."""
        data = [one for one in self.files if one.family != OFFSETS_FAMILY_ID]
        if not data:
            return
        entries = sum(one.entries for one in data)
        oldest_us = min(one.oldest_us for one in data)
        content = sst(entries=entries, oldest_us=oldest_us)
        number = self._write_sst(content, data[0].family, 0, entries, level=6)
        number.oldest_us = oldest_us
        gone = b"".join(writer.deleted(one.number, one.level) for one in data)
        self._append([gone + self._added(number) + writer.counters(self._next_file, self._sequence)])
        for one in data:
            self.files.remove(one)
            self.world.play("unlink", f"{self.path}/{one.number:06d}.sst")

    # -- files ------------------------------------------------------------------------------------------

    def _number(self) -> int:
        self._next_file += 1
        return self._next_file

    def _write_sst(
        self, content: bytes, family: int, sequence: int, entries: int, level: int = 0
    ) -> DataFile:
        one = DataFile(self._number(), family, sequence, len(content), entries, level, self.world.now_us)
        self.world.write(f"{self.path}/{one.number:06d}.sst", content)
        self.files.append(one)
        return one

    def _added(self, one: DataFile) -> bytes:
        low = 0 if one.sequence == 0 else 1
        part = writer.added(one.number, one.sequence, size=one.size, level=one.level, low=low)
        return part + (writer.family(one.family) if one.family else b"")

    def _append(self, records: list[bytes]) -> None:
        self._manifest_logged = self._sequence
        self.world.play("write", f"{self.path}/MANIFEST-{self._manifest:06d}", data=writer.frame(records))

    def _start_manifest(self, number: int) -> None:
        """Begin a manifest with a snapshot and swap CURRENT to it."""
        old, self._manifest = self._manifest, number
        self._manifest_logged = self._sequence
        records = [writer.varint(1) + writer.string(b"leveldb.BytewiseComparator")]
        records += [self._family_record(family_id, name) for family_id, name in self._families()]
        records += [self._added(one) for one in self.files]
        records.append(writer.counters(self._next_file + 1, self._sequence))
        path = f"{self.path}/MANIFEST-{number:06d}"
        self.world.play("create", path)
        self.world.play("open_w", path)
        self.world.play("write", path, data=writer.frame(records))
        self.world.replace(
            f"{self.path}/CURRENT", f"MANIFEST-{number:06d}\n".encode(), f"{self.path}/{number:06d}.dbtmp"
        )
        if old and self.world.has(f"{self.path}/MANIFEST-{old:06d}") and old != number:
            self.world.play("unlink", f"{self.path}/MANIFEST-{old:06d}")

    def _family_record(self, family_id: int, name: str) -> bytes:
        return writer.family_add(family_id, name)

    def _families(self) -> list[tuple[int, str]]:
        families = [(TIMESTAMPED_FAMILY_ID, "keyValueWithTimestamp")] if self.timestamped else []
        return families + ([(OFFSETS_FAMILY_ID, "offsets")] if self.habits.offsets_in_store else [])

    def _write_options(self) -> None:
        old, self._options = self._options, self._number()
        names = ["default", *(name for _, name in self._families())]
        text = f"[Version]\n  rocksdb_version={self.habits.rocksdb}\n  options_file_version=1.1\n"
        bulk = "  level0_file_num_compaction_trigger=1073741824\n  disable_auto_compactions=true\n"
        text += "".join(f'[CFOptions "{name}"]\n{bulk if self.bulk_loading else ""}' for name in names)
        self.world.replace(
            f"{self.path}/OPTIONS-{self._options:06d}",
            text.encode(),
            f"{self.path}/OPTIONS-{self._options:06d}.dbtmp",
        )
        if old and self.world.has(f"{self.path}/OPTIONS-{old:06d}"):
            self.world.play("unlink", f"{self.path}/OPTIONS-{old:06d}")
