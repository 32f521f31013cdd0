"""Entries of a store as buckets (`agent.contract.buckets`): numbers and fingerprints, without content.

Sole importer of xxhash.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable

from agent.contract.buckets import BUCKETS, MAX_BUCKETS, SECOND, SEED, Bucket
from agent.errors import UsageError

INSTALL = "pip install 'statewarden[verify]'"


class Buckets:
    """Counts entries in any order; each must be added once. Memory: 32 bytes per bucket."""

    def __init__(self, number: int = BUCKETS) -> None:
        """Begin with none.

        Raises `ValueError`: not a power of two from 1 to `MAX_BUCKETS`. Raises `UsageError`: xxhash is not installed.
        """
        self._hash = load()
        self._second_seed = self._hash(struct.pack("<q", SECOND), SEED)
        if not 0 < number <= MAX_BUCKETS or number & (number - 1):
            raise ValueError(f"{number} buckets: a power of two up to {MAX_BUCKETS} is needed")
        self._mask = number - 1
        zeros = bytes(8 * number)
        self._entries, self._keys, self._first, self._second = (array("Q", zeros) for _ in range(4))

    def add(self, key: bytes, value: bytes) -> None:
        """Count an entry: a record's key, and its value as `agent.contract.buckets` says."""
        hashed = self._hash
        of_key = hashed(key, SEED)
        bucket = of_key & self._mask
        self._entries[bucket] += 1
        self._keys[bucket] ^= of_key
        self._first[bucket] ^= hashed(value, of_key)
        self._second[bucket] ^= hashed(value, hashed(key, self._second_seed))

    @property
    def entries(self) -> int:
        """How many were added."""
        return sum(self._entries)

    def rows(self) -> tuple[Bucket, ...]:
        """List the buckets that are not empty, in order."""
        signed = (memoryview(x).cast("B").cast("q") for x in (self._keys, self._first, self._second))
        rows = enumerate(zip(self._entries, *signed, strict=True))
        return tuple(Bucket(number, *row) for number, row in rows if row[0])


def load() -> Callable[[bytes, int], int]:
    """Load XXH64: bytes and seed to an unsigned number. Raises `UsageError`: xxhash is not installed."""
    try:
        from xxhash import xxh64_intdigest
    except ImportError as error:
        raise UsageError(f"digest needs xxhash: {INSTALL} ({error})") from error
    found: Callable[[bytes, int], int] = xxh64_intdigest
    return found
