"""Hostile RocksDB files: how they are made, and what one look at them may cost at most."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from random import Random

from agent.observe.rocksdb.coding import Unread
from agent.observe.rocksdb.log_records import read_records
from agent.observe.rocksdb.store import StoreFacts, read_store
from tests.support.rocksdb_writer import added, counters, family, family_add, frame
from tests.support.tree_disk import FilesDisk

FOOTER_BYTES = 53
SST_READS = 5
"""No byte of an SST is worth more reads: metaindex, properties, index, lower index, data."""
MANIFEST_READS = 4
"""No more reads of a manifest that does not change: twice if torn, again if a file is missing."""
PEAK_BYTES, PEAK_FACTOR = 1 << 20, 300
"""Memory of one look: a constant, and a multiple of the files' size (prefix compression makes much of little)."""

_LONG_NUMBERS = (
    b"\xff" * 9 + b"\x01",
    b"\xff" * 4 + b"\x0f",
    b"\xff" * 9 + b"\x7f",
    b"\xff" * 12,
    b"\x80" * 10,
)


def database_of(sst: bytes) -> dict[str, bytes]:
    """Make a database that has this file twice: in a data family and in the `offsets` family."""
    size = len(sst)
    records = [
        counters(20, 9),
        family_add(1, "offsets"),
        added(10, 5, size=size) + counters(21, 9),
        added(11, 9, size=size) + family(1) + counters(22, 9),
    ]
    return {**with_manifest(frame(records)), "s/000010.sst": sst, "s/000011.sst": sst}


def with_manifest(content: bytes) -> dict[str, bytes]:
    """Make a database of a manifest alone."""
    return {"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": content}


def look(files: dict[str, bytes]) -> StoreFacts | Unread:
    """Read a database, and follow its memory: only here, for that is slow.

    Raises:
        AssertionError: it took more reads or memory than the bounds above.
    """
    disk = FilesDisk(files)
    tracemalloc.start()
    try:
        facts = read_store(disk, "s")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = sum(map(len, files.values()))
    assert peak <= PEAK_BYTES + PEAK_FACTOR * size, f"{peak} bytes of memory for {size}"
    for path, content in files.items():
        got = sum(len(piece) for name, _, piece in disk.reads if name == path)
        times = SST_READS if path.endswith(".sst") else MANIFEST_READS
        assert got <= times * len(content) + FOOTER_BYTES, f"{got} bytes of {path}, which has {len(content)}"
    if isinstance(facts, StoreFacts):
        _require_small_numbers(facts)
    return facts


def _require_small_numbers(facts: StoreFacts) -> None:
    """What is counted and summed travels in events as a signed 64-bit number."""
    view = facts.manifest
    told = [view.number, view.last_sequence, view.next_file, view.flushed_sequence]
    told += [sum(one.size_bytes for one in view.live), facts.deletions or 0]
    told += [facts.live.high if facts.live else 0, *(one.number for one in view.live)]
    assert all(0 <= number < 1 << 63 for number in told), told


def without_checksums(sst: bytes) -> bytes:
    """Say in the footer that blocks have no checksums, so that damage gets past them (not the oldest format)."""
    changed = bytearray(sst)
    changed[-FOOTER_BYTES] = 0
    return bytes(changed)


def mutate_manifest(content: bytes, random: Random) -> bytes:
    """Damage a record of a manifest and write all of them again, with good checksums."""
    records = list(read_records(content).records)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(records))
        records[place] = mutate(records[place], random)
    return frame(records)


def mutate(content: bytes, random: Random) -> bytes:
    """Damage bytes in a few places, mostly near the end, where an SST keeps lengths and places."""
    out = bytearray(content)
    for _ in range(random.randint(1, 5)):
        if not out:
            break
        _change(out, random)
    return bytes(out)


def _change(out: bytearray, random: Random) -> None:
    size = len(out)
    place = size - 1 - random.randrange(min(size, random.choice((60, 400, size))))
    kind = random.randrange(7)
    if kind == 0:
        out[place] ^= 1 << random.randrange(8)
    elif kind == 1:
        out[place] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
    elif kind == 2:
        number = random.choice(_LONG_NUMBERS)
        out[place : place + len(number)] = number
    elif kind == 3:  # a loop, or blocks that overlap
        source, length = random.randrange(size), random.randint(1, 40)
        out[place : place + length] = out[source : source + length]
    elif kind == 4:
        out[place:place] = random.randbytes(random.randint(1, 8))
    elif kind == 5:
        del out[place : place + random.randint(1, 30)]
    else:
        del out[place:]


def sources(roots: list[Path]) -> tuple[list[bytes], list[bytes]]:
    """Collect what to damage below `roots`: SST files, with and without checksums, and manifests."""
    tables = [path.read_bytes() for root in roots for path in sorted(root.rglob("*.sst"))]
    tables = [one for one in tables if FOOTER_BYTES <= len(one) <= 64 << 10]
    manifests = [path.read_bytes() for root in roots for path in sorted(root.rglob("MANIFEST-*"))]
    return tables + [without_checksums(one) for one in tables], manifests
