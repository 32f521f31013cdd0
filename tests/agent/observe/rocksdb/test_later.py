"""Files of a later time than the manifest's: what a backup leaves that was put over a newer database."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agent.contract.events import Source
from agent.inventory.disk import FileStat, LockState, Unseen
from agent.layout.paths import classify
from agent.observe.observer import Observer
from agent.observe.rocksdb.later import MOST_OPENED, later_file
from agent.observe.rocksdb.manifest import read_manifest
from agent.observe.rocksdb.replay import ManifestView, Origin
from agent.observe.rocksdb.store import StoreFacts, read_store
from tests.support.rocksdb_writer import added, counters, deleted, frame
from tests.support.table_writer import sst
from tests.support.tree_disk import FilesDisk, TreeDisk

SECOND_US = 1_000_000
CURRENT = "MANIFEST-000005"
FLUSHED, COMPACTED = (sst(entries=1, oldest_us=SECOND_US, is_flushed=x) for x in (True, False))
BACKUP = frame([added(8, 100), counters(9, 100)])
"""The manifest of the backup: one file, the next number is 9."""
MORE = frame([added(8, 100) + added(9, 300), counters(12, 300)])


class DatedDisk(FilesDisk):
    """Files with times in seconds; a path without one was written at 10."""

    def __init__(self, files: dict[str, bytes], seconds: dict[str, float]) -> None:
        super().__init__({f"s/{name}": content for name, content in files.items()})
        self.seconds, self.looked = seconds, 0

    def stat(self, path: str) -> FileStat:
        self.looked += 1
        found = super().stat(path)
        assert isinstance(found, FileStat)
        return found._replace(mtime_us=round(self.seconds.get(path[2:], 10) * SECOND_US))


def found(
    files: dict[str, bytes], manifest: bytes = BACKUP, opened: float = 0, **seconds: float
) -> str | None:
    """What is found beside the backup; a file that is named in `seconds` without its suffix has that time."""
    files = {"CURRENT": b"MANIFEST-000005\n", CURRENT: manifest, "000008.sst": FLUSHED, **files}
    dated = {name: at for key, at in seconds.items() for name in files if key[1:] in name}
    disk = DatedDisk(files, dated)
    view = read_manifest(disk, "s")
    assert isinstance(view, ManifestView)
    later, unread = later_file(disk, "s", [x.name for x in disk.list("s")], view, round(opened * SECOND_US))  # type: ignore[union-attr]
    assert unread == []
    return None if later is None else later[1]


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        # SST files
        (found({"000009.sst": FLUSHED}, _000009=11), "000009.sst"),
        (found({"000009.sst": FLUSHED, "000010.sst": FLUSHED}, _000009=12, _000010=11), "000010.sst"),
        (found({"000009.sst": FLUSHED}, _000009=10), None),  # not after the manifest's last change
        (found({"000007.sst": FLUSHED}, _000007=11), None),  # it may have been named and compacted away
        (found({"000009.sst": COMPACTED}, _000009=11), None),
        (found({"000009.sst": FLUSHED[:-1]}, _000009=11), None),
        (found({"000009.sst": b""}, _000009=11), None),
        (found({"000009.sst": FLUSHED}, BACKUP[:-1], _000009=11), None),  # its lost end may have named it
        (found({"000009.sst": FLUSHED}, opened=12, _000009=11), "000009.sst"),  # an open kept it: it was named
        # manifests
        (found({"MANIFEST-000011": MORE}, _000011=11), "MANIFEST-000011"),
        (found({"MANIFEST-000011": MORE[1:]}, _000011=11), None),  # no record of it is sound
        (found({"MANIFEST-000011": MORE}, _000011=10), None),
        (found({"MANIFEST-000011": MORE}, opened=12, _000011=11), None),
        (found({"MANIFEST-000011": BACKUP}, _000011=11), None),  # it names no more data
        (found({"MANIFEST-000011": b""}, _000011=11), None),
        (found({"MANIFEST-000004": MORE}, _000004=11), None),
        (found({"000011.dbtmp": b"", "000012.log": b"", "000013.blob": b""}, _00001=11), None),
    ],
)  # fmt: skip
def test_what_counts(later, expected):
    """A flush after the manifest's last change, or a manifest that names more."""
    assert later == expected


def test_nothing_is_looked_at_without_a_higher_number():
    """Beside what the manifest names, or named."""
    manifest = frame([added(8, 100), added(9, 200) + deleted(8) + counters(10, 200)])
    disk = DatedDisk({CURRENT: manifest, "CURRENT": b"MANIFEST-000005\n"}, {})
    view = read_manifest(disk, "s")
    assert isinstance(view, ManifestView)
    disk.looked, disk.reads = 0, []
    named = ["000008.sst", "000009.sst", CURRENT, "CURRENT", "LOG"]
    assert later_file(disk, "s", named, view, 0) == (None, [])
    assert (disk.looked, disk.reads) == (0, [])


def test_bounded():
    """A directory full of files costs no more than a few."""
    many = {f"{number:06d}.sst": COMPACTED for number in range(9, 300)}
    disk = DatedDisk({"CURRENT": b"MANIFEST-000005\n", CURRENT: BACKUP, **many}, dict.fromkeys(many, 11.0))
    view = read_manifest(disk, "s")
    assert isinstance(view, ManifestView)
    disk.looked, disk.reads = 0, []
    assert later_file(disk, "s", list(many), view, 0) == (None, [])
    assert disk.looked == MOST_OPENED + 1
    assert len({path for path, _, _ in disk.reads}) == MOST_OPENED


@pytest.mark.parametrize("name", ["000009.sst", "MANIFEST-000010"])
@pytest.mark.parametrize("unseen", Unseen)
def test_what_cannot_be_read_is_named(name: str, unseen: Unseen, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the one that shows the loss; one that went meanwhile is no more."""
    files = {"CURRENT": b"MANIFEST-000005\n", CURRENT: BACKUP, name: FLUSHED}
    disk = DatedDisk(files, {name: 11.0})
    view = read_manifest(disk, "s")
    assert isinstance(view, ManifestView)
    monkeypatch.setattr(disk, "read_at", lambda *_: unseen)
    said = [] if unseen is Unseen.VANISHED else [f"{name}: {unseen}: the manifest does not name it"]
    assert later_file(disk, "s", [name], view, 0) == (None, said)


@pytest.mark.parametrize(
    "name", ["5.7.3", "5.14.2", "5.15.10", "5.18.3", "5.18.4", "7.1.2", "7.9.2", "9.7.3", "10.1.3"]
)
def test_who_made_a_file(recorded: TreeDisk, name: str) -> None:
    """The files of every RocksDB that Kafka Streams shipped say it; those of 5.7 say nothing."""
    facts = read_store(recorded, name)
    assert isinstance(facts, StoreFacts)
    origins = {one.number: one.origin for one in facts.manifest.new_files}
    for one in facts.files:
        assert one.properties is not None
        if origins[one.file.number] is not Origin.SNAPSHOT:
            is_flush = origins[one.file.number] is Origin.FLUSH
            assert one.properties.is_flushed is (is_flush and name != "5.7.3")


def test_of_rocksdb_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup is put over a closed store: a flush shows it, a compaction does not. A held store is not asked."""
    rocksdict = pytest.importorskip("rocksdict", reason="the extra `verify` is not installed")
    store = rocksdict.Rdict(str(tmp_path / "live"))

    def flushed(name: str) -> Path:
        for number in range(100):
            store[f"key{number:03d}"] = name
        store.flush()
        return Path(shutil.copytree(tmp_path / "live", tmp_path / name))

    def seen(newer: Path, lock: LockState = LockState.FREE) -> str:
        place = tmp_path / "app" / "0_0" / "rocksdb" / "s"
        shutil.copytree(newer, place)
        for path in backup.iterdir():
            shutil.copy2(path, place)
        monkeypatch.setattr(TreeDisk, "lock_state", lambda *_: lock)
        later = Observer(TreeDisk(tmp_path)).database(classify("app/0_0/rocksdb/s"), 1, Source.BASELINE).later
        shutil.rmtree(place)
        return "" if later is None else later.name

    backup = flushed("backup")
    for path in backup.iterdir():
        os.utime(path, (path.stat().st_mtime - 60,) * 2)
    newer = flushed("newer")
    (name,) = tables(newer) - tables(backup)
    assert [seen(backup), seen(newer), seen(newer, LockState.HELD)] == ["", name, ""]
    store.compact_range(None, None)
    store.close()
    compacted = tmp_path / "live"
    assert tables(compacted).isdisjoint(tables(newer))
    assert seen(compacted) == ""
    shutil.copy2(newer / name, compacted)
    assert seen(compacted) == name


def tables(directory: Path) -> set[str]:
    """Names of the SST files in it."""
    return {x.name for x in directory.glob("*.sst")}
