"""A changelog in memory and stores as RocksDB writes them, for tests of the comparison."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.errors import UsageError
from agent.verify.changelog import Record
from agent.verify.kinds import DEFAULT, TIMESTAMPED, Headers
from agent.verify.verify import Result

APP, TASK = "orders", "0_0"
AT_MS = 1_700_000_000_000
DAY_MS = 86_400_000
PROCESS = '{"processId":"1b4e28ba-2fa1-11d2-883f-0016d3cca427"}'
Verify = Callable[..., Result]
Entries = dict[bytes, bytes]


@dataclass
class Topic:
    """A partition: records by offset; `aborted` are of transactions that did not commit, `markers` no records."""

    records: list[Record] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    start: int = 0
    markers: int = 0
    settings: dict[str, str] | None = field(default_factory=dict)

    def add(
        self,
        key: bytes,
        value: bytes | None,
        at_ms: int = AT_MS,
        headers: Headers = (),
        *,
        is_aborted: bool = False,
    ) -> int:
        """Append a record; returns its offset."""
        offset = self.end
        self.records.append(Record(offset, at_ms, key, value, headers))
        if is_aborted:
            self.aborted.add(offset)
        return offset

    @property
    def end(self) -> int:
        """Offset behind the last one, transactions' markers counted."""
        return (self.records[-1].offset + 1 if self.records else self.start) + self.markers


class Cluster:
    """Topics in memory, with the face of `Changelogs`."""

    def __init__(self, topics: Mapping[str, Topic | Sequence[Topic]]) -> None:
        """Take the topics by name: one partition, or several."""
        self.by_name = {name: [x] if isinstance(x, Topic) else list(x) for name, x in topics.items()}

    def partitions(self, topic: str) -> int:
        """See `Changelogs.partitions`."""
        return len(self.by_name[topic])

    def topics(self, prefix: str) -> set[str]:
        """See `Changelogs.topics`."""
        return {name for name in self.by_name if name.startswith(prefix)}

    def range(self, topic: str, partition: int) -> tuple[int, int]:
        """See `Changelogs.range`."""
        if topic not in self.by_name:
            raise UsageError(f"{topic}: no such topic")
        found = self.by_name[topic][partition]
        return found.start, found.end

    def settings(self, topic: str) -> dict[str, str] | None:
        """See `Changelogs.settings`."""
        return self.by_name[topic][0].settings

    def read(
        self, topic: str, partition: int, start: int, end: int, *, committed: bool
    ) -> Generator[list[Record], None, None]:
        """See `Changelogs.read`; batches of three."""
        found = self.by_name[topic][partition]
        rows = [
            x
            for x in found.records
            if max(start, found.start) <= x.offset < end and not (committed and x.offset in found.aborted)
        ]
        for at in range(0, len(rows), 3):
            yield rows[at : at + 3]


def write_database(
    path: Path,
    families: Mapping[str, Sequence[tuple[bytes, bytes]]],
    offsets: Mapping[str, int] | None = None,
) -> None:
    """Write a database; with `offsets`, one of 4.3, whose own entries they are (`status` among them)."""
    import rocksdict

    path.mkdir(parents=True)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    longs = {
        name.encode(): number.to_bytes(8, "big", signed=True) for name, number in (offsets or {}).items()
    }
    wanted = {name: list(rows) for name, rows in families.items()} | (
        {"offsets": list(longs.items())} if longs else {}
    )
    others = {name: options for name in wanted if name != DEFAULT}
    database = rocksdict.Rdict(str(path), options, column_families=others)
    for name, rows in wanted.items():
        family = database.get_column_family(name)
        for key, value in rows:
            family[key] = value
        family.flush()
    database.close()


class StateDir:
    """A state directory with one task."""

    def __init__(self, root: Path) -> None:
        """Make it."""
        self.root = root
        self.task = root / APP / TASK
        self.task.mkdir(parents=True)
        (root / APP / "kafka-streams-process-metadata").write_text(PROCESS)

    def hold(self, entries: Entries, *, store: str = "kv", **own: int) -> None:
        """Write a store with these timestamped entries; `at` is its offset in the checkpoint."""
        rows = {DEFAULT: [], TIMESTAMPED: list(entries.items())}
        write_database(self.store(store), rows)
        if own:
            self.checkpoint(**{store: own["at"]})

    def checkpoint(self, **offsets: int) -> None:
        """Write the checkpoint: store -> offset."""
        lines = [f"{APP}-{store}-changelog 0 {offset}" for store, offset in offsets.items()]
        self.checkpoint_lines(lines)

    def checkpoint_lines(self, lines: Sequence[str]) -> None:
        """Write the checkpoint's lines."""
        (self.task / ".checkpoint").write_text("".join(f"{x}\n" for x in ["0", str(len(lines)), *lines]))

    def store(self, name: str) -> Path:
        """Directory of a store of one database."""
        return self.task / "rocksdb" / name

    def segment(self, name: str, start_ms: int) -> Path:
        """Directory of a segment."""
        return self.task / name / f"{name}.{start_ms}"

    def tree(self) -> dict[str, tuple[int, int, int]]:
        """Inode, size and time of everything in it."""
        return {
            str(x): (x.lstat().st_ino, x.lstat().st_size, x.lstat().st_mtime_ns)
            for x in [self.root, *self.root.rglob("*")]
        }
