"""Damage stores file by file; hold what `scan` says against what RocksDB makes of them: a part of `make prove`.

    python tests/fuzz/against_rocksdb.py [--mutations 2000] [--random-seed 1] [--keep DIR]

Stores on one database, with blob files, and of segments are made with rocksdict; one file of a copy is removed,
emptied, cut, overwritten, lengthened, or replaced by another of its kind. Then a real RocksDB opens every database of
the copy, as Kafka Streams does, and reads every key, by a walk and by a lookup. What RocksDB

- refuses, or cannot read, has to be loud (a warning at least), unless only data blocks of an SST file, or records of a
  blob file, were touched: they hold keys and values, which nothing here reads. These are counted;
- reads whole must never be critical;
- opens with less, and without a word, has to be loud, too, but for what `_UNSEEN` names.

Exit code 1 if one of these does not hold. `--keep` leaves the stores that broke a rule.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import rocksdict  # noqa: E402 - the repository goes on the path first

from agent.cli.main import main as statewarden  # noqa: E402
from agent.observe.kernel_disk import KernelDisk  # noqa: E402
from agent.observe.rocksdb import sst  # noqa: E402
from agent.observe.rocksdb.block import TRAILER_BYTES  # noqa: E402
from agent.observe.rocksdb.version_edit import BLOB_FOOTER_BYTES, BLOB_HEADER_BYTES  # noqa: E402

APPLICATION = "fuzzed"
COMES_BACK_S = 60
_SET = (
    "processing_guarantee=at_least_once",
    "kafka_streams_version=3.9.1",
    "num_standby_replicas=0",
    "state_cleanup_delay_ms=600000",
    "commit_interval_ms=30000",
    "delete_retention_ms=86400000",
)
_REFUSED, _UNREADABLE, _LESS, _WHOLE = "refused", "unreadable", "less", "whole"
_ABOUT_THE_PLACE = frozenset({"setup"})  # where the copies are kept
_VITAL = frozenset({"CURRENT", "MANIFEST", "sst", "blob"})
_CONTENT = "data blocks or blob records only"

_UNSEEN = {
    ("MANIFEST", "cut"): "a manifest that lost its end exactly between two records",
    (
        "MANIFEST",
        "zeroed-end",
    ): "a manifest whose end became zeros exactly behind a record, as a preallocated rest is",
    ("blob", "replaced"): "a blob file of the same size in the place of another",
}
"""What no part of a file shows that is read here: docs/runbooks/damaged-files.md#torn-store, blind spots."""

Entries = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Original:
    """A state directory that is whole: its databases, and what each holds."""

    kind: str
    root: Path
    databases: Mapping[str, Entries]


@dataclass(frozen=True, slots=True)
class Damage:
    """What was done to one file; `touched` is None where its size, or the file as a whole, changed."""

    path: str
    what: str
    touched: range | None = None


# -- stores ---------------------------------------------------------------------------------------------------------


def make_originals(place: Path, random: Random) -> list[Original]:
    """Make a store of each kind."""
    segments = {f"w/w.{start}": 400 for start in (0, 60_000, 120_000)}
    layouts: dict[str, dict[str, int]] = {
        "plain": {"rocksdb/s": 2500},
        "blob": {"rocksdb/s": 1500},
        "segmented": segments,
    }
    found = []
    for kind, databases in layouts.items():
        root, held = place / kind, {}
        task = root / APPLICATION / "0_0"
        for path, keys in databases.items():
            (task / path).mkdir(parents=True)
            held[path] = _fill(task / path, keys, random, blobs=kind == "blob")
        name = "w" if kind == "segmented" else "s"
        count = sum(databases.values())
        (task / ".checkpoint").write_text(f"0\n1\n{APPLICATION}-{name}-changelog 0 {count}\n")
        found.append(Original(kind, root, held))
    return found


def _options(*, blobs: bool) -> rocksdict.Options:
    options, tables = rocksdict.Options(raw_mode=True), rocksdict.BlockBasedOptions()
    tables.set_bloom_filter(10.0, block_based=False)  # RocksDBStore.openDB
    tables.set_block_size(4096)
    options.set_block_based_table_factory(tables)
    options.set_compression_type(rocksdict.DBCompressionType.none())
    options.set_max_open_files(-1)
    options.set_enable_blob_files(blobs)
    options.set_min_blob_size(100)
    return options


def _fill(place: Path, keys: int, random: Random, *, blobs: bool) -> Entries:
    """Write in flushes, delete some, open it twice: a manifest with a snapshot and edits behind it."""
    held: Entries = {}
    for part in range(5):
        database = rocksdict.Rdict(str(place), _options(blobs=blobs))
        for number in range(part * keys // 5, (part + 1) * keys // 5):
            key = b"key%06d" % number
            held[key] = random.randbytes(300 if blobs and number % 2 else 40)
            database[key] = held[key]
        for key in random.sample(sorted(held), keys // 100):
            del database[key], held[key]
        database.flush()
        if part == 3:
            database.compact_range(None, None)
        database.close()
    (place / "rocksdict-config.json").unlink(missing_ok=True)
    return held


# -- damage ---------------------------------------------------------------------------------------------------------


def kind_of(name: str) -> str:
    """Name the kind of a file of RocksDB."""
    return name.partition("-")[0] if "-" in name else name.rpartition(".")[2] if "." in name else name


def damage(root: Path, random: Random) -> Damage:
    """Damage one file, of a kind that matters more often than not."""
    files: dict[str, list[Path]] = {}
    for path in sorted(root.glob("*/0_0/*/*/*")):
        files.setdefault(kind_of(path.name), []).append(path)
    del files["LOG"]
    kind = random.choice([*files, *(x for x in files if x in _VITAL for _ in range(3))])
    path = random.choice(files[kind])
    size = path.stat().st_size
    deeds = (
        [_remove, _empty, _lengthen]
        if size < 2
        else [_remove, _empty, _lengthen, _cut, _zero, _flip, _flip, _end]
    )
    others = [x for x in files[kind] if x != path]
    if others and random.random() < 0.1:
        shutil.copyfile(random.choice(others), path)
        return Damage(str(path.relative_to(root)), "replaced")
    deed = random.choice(deeds)
    what, touched = deed.__name__[1:], deed(path, size, random)
    is_end = what == "zero" and touched is not None and touched.stop == size
    return Damage(str(path.relative_to(root)), "zeroed-end" if is_end else what, touched)


def _remove(path: Path, size: int, random: Random) -> None:
    path.unlink()


def _empty(path: Path, size: int, random: Random) -> None:
    path.write_bytes(b"")


def _lengthen(path: Path, size: int, random: Random) -> None:
    path.write_bytes(path.read_bytes() + random.randbytes(random.choice((1, 7, 4096))))


def _cut(path: Path, size: int, random: Random) -> None:
    path.write_bytes(path.read_bytes()[: random.randrange(1, size)])


def _zero(path: Path, size: int, random: Random) -> range:
    begins = random.randrange(size)
    return _write(path, begins, bytes(min(random.choice((1, 16, 4096)), size - begins)))


def _flip(path: Path, size: int, random: Random) -> range:
    at = random.randrange(size)
    return _write(path, at, bytes([path.read_bytes()[at] ^ 1 << random.randrange(8)]))


def _end(path: Path, size: int, random: Random) -> range:
    """The part that says where everything else is."""
    at = max(0, size - random.randrange(1, 3000))
    return _write(path, at, bytes([path.read_bytes()[at] ^ 1 << random.randrange(8)]))


def _write(path: Path, at: int, content: bytes) -> range:
    data = bytearray(path.read_bytes())
    data[at : at + len(content)] = content
    path.write_bytes(bytes(data))
    return range(at, at + len(content))


def is_content_only(original: Path, touched: range | None) -> bool:
    """Return whether only keys and values were touched: data blocks of an SST file, records of a blob file."""
    if touched is None or original.suffix not in (".sst", ".blob"):
        return False
    size = original.stat().st_size
    if original.suffix == ".blob":
        return touched.start >= BLOB_HEADER_BYTES and touched.stop <= size - BLOB_FOOTER_BYTES
    disk = KernelDisk(original.parent)
    table = sst.open_table(disk, original.name, size)
    ends = [one.offset + one.size + TRAILER_BYTES for one in sst._data_blocks(disk, table)]
    return touched.stop <= max(ends)


# -- RocksDB --------------------------------------------------------------------------------------------------------


def judged_by_rocksdb(place: str, held: Entries, *, blobs: bool) -> str:
    """Open a copy as Kafka Streams does and read all of it, in a process of its own: it may not come back."""
    try:
        database = rocksdict.Rdict(place, _options(blobs=blobs))
    except Exception as error:  # noqa: BLE001 - whatever RocksDB says
        return f"{_REFUSED}: {error}"
    try:
        found: Entries = {}
        steps = database.iter()
        steps.seek_to_first()
        while steps.valid():
            found[steps.key()] = steps.value()
            steps.next()
        steps.status()
        for key, value in held.items():
            if database.get(key) != value:
                return f"{_LESS}: a lookup does not find what was written"
    except Exception as error:  # noqa: BLE001 - whatever RocksDB says
        return f"{_UNREADABLE}: {error}"
    finally:
        with contextlib.suppress(Exception):
            database.close()
    return _WHOLE if found == held else f"{_LESS}: {len(found)} of {len(held)} entries"


class Judge:
    """RocksDB, in a process that is made anew when it dies."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def ask(self, root: Path, original: Original) -> str:
        """Give the worst that it says of any database below a root; it works on a copy."""
        said = []
        for path, held in original.databases.items():
            with tempfile.TemporaryDirectory(prefix="judged-") as copy:
                place = Path(copy) / "store"
                shutil.copytree(root / APPLICATION / "0_0" / path, place)
                said.append(self._ask(str(place), held, blobs=original.kind == "blob"))
        order = (_REFUSED, _UNREADABLE, _LESS, _WHOLE)
        return min(said, key=lambda x: order.index(x.partition(":")[0]))

    def _ask(self, place: str, held: Entries, *, blobs: bool) -> str:
        self._pool = self._pool or ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        try:
            return self._pool.submit(judged_by_rocksdb, place, held, blobs=blobs).result(timeout=COMES_BACK_S)
        except BrokenProcessPool:
            self._pool = None
            return f"{_REFUSED}: the process died"
        except TimeoutError:  # some manifests make RocksDB 10 read on for ever
            for worker in (self._pool._processes or {}).values():
                worker.kill()
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
            return f"{_REFUSED}: the process did not come back"


# -- statewarden ----------------------------------------------------------------------------------------------------


def scanned(root: Path) -> list[dict[str, object]]:
    """Give the findings of one reading."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
        statewarden(["scan", str(root), "--json", *(x for one in _SET for x in ("--set", one))])
    lines = (json.loads(x) for x in told.getvalue().splitlines())
    found = [x for x in lines if x.get("severity") in ("info", "warning", "critical") and "detector" in x]
    return [x for x in found if x["detector"] not in _ABOUT_THE_PLACE]


# -- together -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and tell what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mutations", type=int, default=2000)
    parser.add_argument("--random-seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="leave the stores that broke a rule here")
    asked = parser.parse_args(arguments)
    random = Random(asked.random_seed)
    counted: Counter[str] = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory(prefix="fuzz-stores-") as place:
        originals = make_originals(Path(place), random)
        judge = Judge()
        for one in originals:
            assert judge.ask(one.root, one) == _WHOLE
            assert not scanned(one.root), "a whole store is quiet"
        for number in range(asked.mutations):
            original = originals[number % len(originals)]
            root = Path(place) / "damaged"
            shutil.copytree(original.root, root)
            done = damage(root, random)
            outcome, problem = _compared(original, root, done, judge)
            counted[outcome] += 1
            if problem:
                broken.append(
                    f"{number} {original.kind} {done.path} {done.what} {done.touched or ''}: {problem}"
                )
                sys.stdout.write(f"BROKEN {broken[-1]}\n")
                sys.stdout.flush()
                if asked.keep:
                    shutil.copytree(root, asked.keep / str(number))
            shutil.rmtree(root)
    for outcome, times in sorted(counted.items()):
        sys.stdout.write(f"{times:>6}  {outcome}\n")
    sys.stdout.write(f"{asked.mutations} mutations, {len(broken)} broke a rule\n")
    return int(bool(broken))


def _compared(original: Original, root: Path, done: Damage, judge: Judge) -> tuple[str, str]:
    """Hold the two against each other: what came of it, and which rule is broken."""
    said = judge.ask(root, original)
    verdict = said.partition(":")[0]
    findings = scanned(root)
    severities = {str(x["severity"]) for x in findings}
    is_loud = bool(severities & {"warning", "critical"})
    where = f"{verdict}, {'critical' if 'critical' in severities else 'loud' if is_loud else 'quiet'}"
    if verdict == _WHOLE:
        told = "; ".join(str(x["summary"]) for x in findings if x["severity"] == "critical")
        return where, f"RocksDB reads all of it, and it is critical: {told}" if told else ""
    kind = kind_of(Path(done.path).name)
    if is_loud:
        return where, ""
    if is_content_only(original.root / done.path, done.touched):
        return f"{where}: {_CONTENT}", ""
    if (kind, done.what) in _UNSEEN:
        return f"{where}: {_UNSEEN[kind, done.what]}", ""
    return where, f"quiet, and RocksDB: {said}"


if __name__ == "__main__":
    sys.exit(main())
