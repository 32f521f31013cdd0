"""A database of which a part cannot be read: what is damage, what lies elsewhere, and what is only new to us."""

from __future__ import annotations

import pytest

from agent.inventory.disk import EntryKind, FileStat
from agent.observe.rocksdb.cache import SstCache
from tests.agent.observe.rocksdb.test_store import in_memory, read, small
from tests.oracle.table_writer import TableWriter, entry
from tests.support.rocksdb_writer import added, counters, family, family_add, frame, string, varint
from tests.support.tree_disk import FilesDisk

ON_ANOTHER_PATH = {
    "kNewFile4": added(7, 9, size=5, custom=varint(65) + string(varint(1))),
    "kNewFile3": varint(102)
    + b"".join(varint(n) for n in (0, 7, 1, 5))
    + string(b"k") * 2
    + varint(1)
    + varint(9),
    "of a family": added(7, 9, size=5, custom=varint(65) + string(varint(1))) + family(2),
}


@pytest.mark.parametrize("form", ON_ANOTHER_PATH)
def test_other_path(form):
    """A file on another path of the database is not missing; its counters are unknown, which is told."""
    records = [family_add(2, "other"), counters(2), ON_ANOTHER_PATH[form] + counters(8, 9)]
    facts = read(FilesDisk({"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": frame(records)}), "s")
    assert facts.missing_files == ()
    assert (facts.deletions, facts.live, facts.manifest.flushed_sequence) == (None, None, 9)
    assert [problem.split(": ")[:2] for problem in facts.problems] == [["000007.sst", "elsewhere"]]


def test_first_path():
    """Path 0 is the database's own directory."""
    records = [counters(2), added(7, 9, size=5, custom=varint(65) + string(b"\0")) + counters(8, 9)]
    facts = read(FilesDisk({"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": frame(records)}), "s")
    assert facts.missing_files == ("000007.sst",)


LOG = "2026/11/26-14:43:35.992634 140519790474944 SST files in {} dir, Total Num: 0, files: \n"


@pytest.mark.parametrize(
    ("paths", "elsewhere"),
    [
        (("/fast",), "/fast"),
        (("/fast/s", "/slow"), "/fast/s or /slow"),
        (("/data/state/app/0_0/rocksdb/s",), None),
        (("/another/mount/app-copy/0_0/rocksdb/s/", "/slow"), None),
        ((), None),
    ],
)
def test_paths_that_the_log_names(paths, elsewhere):
    """Where LOG names other directories than the store's own, files that are not there are not missing."""
    home = "app/0_0/rocksdb/s"
    records = [counters(2), added(7, 9, size=5) + counters(8, 9)]
    log = "x\n" + "".join(LOG.format(path) for path in paths)
    files = {"CURRENT": b"MANIFEST-000005\n", "MANIFEST-000005": frame(records), "LOG": log.encode()}
    facts = read(FilesDisk({f"{home}/{name}": content for name, content in files.items()}), home)
    if elsewhere is None:
        assert facts.missing_files == ("000007.sst",)
        return
    assert facts.missing_files == ()
    assert facts.problems == (f"000007.sst: elsewhere: LOG says that it is in {elsewhere} (db_paths)",)


def test_a_file_that_is_there_shows_where_they_are():
    """A LOG of other times does not hide a loss."""
    records = [counters(2), added(7, 9, size=5) + counters(8, 9), added(8, 12, size=5) + counters(9, 12)]
    files = {"CURRENT": b"MANIFEST-000005\n", "MANIFEST-000005": frame(records), "000008.sst": b"12345"}
    files["LOG"] = LOG.format("/fast").encode()
    facts = read(FilesDisk({f"a/0_0/rocksdb/s/{name}": x for name, x in files.items()}), "a/0_0/rocksdb/s")
    assert facts.missing_files == ("000007.sst",)


def test_damage_is_read_again(encodings):
    """A file that could not be read is not remembered so: the volume may have come to itself."""
    disk, cache = in_memory(encodings, "xxh3"), SstCache()
    name = next(path for path in sorted(disk.files) if path.endswith(".sst"))
    whole, stat = disk.files[name], disk.stat(name)
    disk.stat = lambda path: stat if path == name else FilesDisk.stat(disk, path)  # type: ignore[method-assign]
    disk.files[name] = bytes(len(whole))
    assert [x.split(": ")[1] for x in read(disk, "s", cache=cache).problems] == ["corrupt"]
    disk.files[name] = whole
    assert read(disk, "s", cache=cache).problems == ()


def test_torn_manifest_is_a_problem():
    """What a torn manifest hides is told."""
    disk = FilesDisk({"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": small() + b"torn record"})
    assert [x.split(": ")[:2] for x in read(disk, "s").problems] == [["MANIFEST-000005", "cut"]]


def test_undecodable_entry():
    """An entry of `offsets` that nobody can decode is told."""
    table = TableWriter()
    key = b"status" + (9 << 8 | 1).to_bytes(8, "little")
    content = table.finish(index=[table.add(entry(0, key, b"short"))])
    records = [
        counters(2),
        family_add(1, "offsets"),
        added(7, 9, size=len(content)) + family(1) + counters(8),
    ]
    files = {"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": frame(records), "s/000007.sst": content}
    assert read(FilesDisk(files), "s").problems == (
        "offsets: unsupported: entry status: 5 bytes instead of 8",
    )


@pytest.mark.parametrize(
    ("magic", "kind"),
    [
        (0x8242229663BF9564, "unsupported"),
        (0x4F3418EB7A8F13B8, "unsupported"),
        (0x926789D0C5F17873, "unsupported"),
        (0, "corrupt"),
        (1234567, "corrupt"),
    ],
)
def test_other_tables(magic, kind):
    """A table of another kind, which an application may choose, is not damaged; one that ends like none is."""
    content = bytes(92) + magic.to_bytes(8, "little")
    records = [counters(2), added(7, 9, size=100) + counters(8, 9)]
    files = {"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": frame(records), "s/000007.sst": content}
    assert [x.split(": ")[1] for x in read(FilesDisk(files), "s").problems] == [kind]


def test_sound_and_not_understood():
    """What has good checksums and makes no sense here may be a form of a later release: nobody calls it damaged."""
    table = TableWriter()
    key = b"status" + (9 << 8 | 1).to_bytes(8, "little")
    block = table.add(entry(0, key, bytes(8)) + entry(99, b"", b""))
    content = table.finish(index=[block])
    records = [
        counters(2),
        family_add(1, "offsets"),
        added(7, 9, size=len(content)) + family(1) + counters(8),
    ]
    files = {"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": frame(records), "s/000007.sst": content}
    assert [x.split(": ")[:2] for x in read(FilesDisk(files), "s").problems] == [
        ["000007.sst", "unsupported"]
    ]


class Linked(FilesDisk):
    """Its SST files are symbolic links."""

    def stat(self, path):
        found = super().stat(path)
        assert isinstance(found, FileStat)
        return found._replace(kind=EntryKind.SYMLINK) if path.endswith(".sst") else found


def test_links():
    """A symbolic link is not followed, and what it leads to is not damaged for that."""
    files = {"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": small(7), "s/000007.sst": b"12345"}
    assert read(Linked(files), "s").problems == ("000007.sst: unsupported: a symlink, not followed",)
