"""A database of which a part cannot be read: what is damage, what lies elsewhere, and what is only new to us."""

from __future__ import annotations

import pytest

from agent.inventory.disk import EntryKind, FileStat
from agent.observe.rocksdb.cache import SstCache
from tests.agent.observe.rocksdb.test_store import in_memory, read, small, store_of
from tests.support.rocksdb_writer import added, counters, family, family_add, frame, string, varint
from tests.support.table_writer import TableWriter, entry
from tests.support.tree_disk import FilesDisk

ELSEWHERE = varint(65) + string(varint(1))
HEAD = b"".join(varint(n) for n in (102, 0, 7, 1, 5))
ON_ANOTHER_PATH = {
    "kNewFile4": added(7, 9, size=5, custom=ELSEWHERE),
    "kNewFile3": HEAD + string(b"k") * 2 + varint(1) + varint(9),
    "of a family": added(7, 9, size=5, custom=ELSEWHERE) + family(2),
}


@pytest.mark.parametrize("form", ON_ANOTHER_PATH)
def test_other_path(form):
    """A file on another path of the database is not missing; its counters are unknown, which is reported."""
    records = [family_add(2, "other"), counters(2), ON_ANOTHER_PATH[form] + counters(8, 9)]
    facts = read(FilesDisk(store_of(frame(records))), "s")
    assert facts.missing_files == ()
    assert (facts.deletions, facts.live, facts.manifest.flushed_sequence) == (None, None, 9)
    assert [problem.split(": ")[:2] for problem in facts.problems] == [["000007.sst", "elsewhere"]]
    first = [counters(2), added(7, 9, size=5, custom=varint(65) + string(b"\0")) + counters(8, 9)]
    assert read(FilesDisk(store_of(frame(first))), "s").missing_files == ("000007.sst",)  # its own directory


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


def table(*entries: bytes) -> bytes:
    """An SST file of the `offsets` family with one block."""
    writer = TableWriter()
    return writer.finish(index=[writer.add(b"".join(entries))])


KEY = b"status" + (9 << 8 | 1).to_bytes(8, "little")
SHORT, SENSELESS = table(entry(0, KEY, b"short")), table(entry(0, KEY, bytes(8)), entry(99, b"", b""))


def of_offsets(content: bytes) -> bytes:
    """A manifest that has it."""
    return frame(
        [counters(2), family_add(1, "offsets"), added(7, 9, size=len(content)) + family(1) + counters(8)]
    )


def other_table(magic: int) -> dict[str, bytes]:
    """A table with this magic number."""
    records = [counters(2), added(7, 9, size=100) + counters(8, 9)]
    return store_of(frame(records), {7: bytes(92) + magic.to_bytes(8, "little")})


PROBLEMS = {
    "what a torn manifest hides": (store_of(small() + b"torn record"), "MANIFEST-000005: cut: "),
    "an entry of `offsets` that nobody can decode":
        (store_of(of_offsets(SHORT), {7: SHORT}), "offsets: unsupported: entry status: 5 bytes instead of 8"),
    "what has good checksums and makes no sense here may be a form of a later release":
        (store_of(of_offsets(SENSELESS), {7: SENSELESS}), "000007.sst: unsupported: "),
    **{f"a table of another kind, which an application may choose, is not damaged: {magic}":
        (other_table(magic), "000007.sst: unsupported: ")
       for magic in (0x8242229663BF9564, 0x4F3418EB7A8F13B8, 0x926789D0C5F17873)},
    **{f"one that ends like none is: {magic}": (other_table(magic), "000007.sst: corrupt: ") for magic in (0, 1234567)},
}  # fmt: skip


@pytest.mark.parametrize(("files", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_problems(files, problem):
    """Each row says what it is about."""
    (said,) = read(FilesDisk(files), "s").problems
    assert said.startswith(problem)


class Linked(FilesDisk):
    """Its SST files are symbolic links."""

    def stat(self, path):
        found = super().stat(path)
        assert isinstance(found, FileStat)
        return found._replace(kind=EntryKind.SYMLINK) if path.endswith(".sst") else found


def test_links():
    """A symbolic link is not followed, and what it leads to is not damaged for that."""
    said = read(Linked(store_of(small(7), {7: b"12345"})), "s").problems
    assert said == ("000007.sst: unsupported: a symlink, not followed",)
