"""Checksums of SST blocks and footers: which kinds there are, and those that are verified here, in plain Python.

CRC-32C (Castagnoli) takes 10 us per KB. XXH3 (64 bits, seed 0, default secret), the kind of RocksDB since 6.27, takes
30 us per KB; blocks here have 0.1 to 4 KB. Source: the xxHash specification, section XXH3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import getitem, xor

_POLYNOMIAL = 0x82F63B78  # reflected: the lowest bit belongs to the highest power
_MASK_DELTA = 0xA282EAD8  # crc32c.h kMaskDelta: a CRC is stored rotated and shifted by this
_PIECE_BYTES = 16 << 10
_STATE_BYTES = 4
_LAST_BYTES = 40  # to so many data is folded, and a table is there for each


def _make_tables() -> Iterator[tuple[int, ...]]:
    """Give what a byte adds to the CRC: of the last byte, of the one before it, and so on."""
    table = tuple(range(256))
    for _ in range(8):
        table = tuple((value >> 1) ^ (_POLYNOMIAL if value & 1 else 0) for value in table)
    shifted = table
    for _ in range(_LAST_BYTES):
        yield shifted
        shifted = tuple(table[value & 0xFF] ^ (value >> 8) for value in shifted)


_TABLES = tuple(_make_tables())
_POWERS = (
    *((1_285 << n, (40 << n, 38 << n, 19 << n, 8 << n, 0)) for n in range(6, -1, -1)),
    (680, (122, 80, 19, 3, 0)),
    (437, (177, 176, 171, 58, 0)),
    (320, (163, 155, 83, 42, 21)),
)
"""x to each of these powers is the sum of five lower ones, modulo the polynomial: found by search, and by squaring."""
_FOLDS = tuple((length, length - x[0], *(x[0] - low for low in x[1:])) for length, x in _POWERS)
"""Lengths in bits to which data is folded, the longest first; how many at once; what the head is shifted by."""


def crc32c(data: bytes | memoryview) -> int:
    """Compute the CRC: 60 ns per byte up to 40 bytes, 10 ns at 1 KB, 3 ns from 16 KB on."""
    crc = 0xFFFFFFFF
    for start in range(0, len(data), _PIECE_BYTES) if len(data) > _PIECE_BYTES else (0,):
        piece = data[start : start + _PIECE_BYTES]
        if len(piece) < _STATE_BYTES:
            for byte in piece:
                crc = _TABLES[0][(crc ^ byte) & 0xFF] ^ (crc >> 8)
        else:
            crc = reduce(xor, map(getitem, _TABLES, _fold_crc(piece, crc)[::-1]))
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data: bytes | memoryview) -> int:
    """Compute the CRC in the form in which RocksDB stores it."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def _fold_crc(data: bytes | memoryview, crc: int) -> bytes:
    """Give at most 40 bytes of the same CRC: a polynomial has the remainder of its head times x^n, plus its tail.

    To multiply by x^n modulo the polynomial takes a few shifts of one long number, which Python does fast.
    """
    bits = 8 * len(data)
    value = int.from_bytes(data, "little") ^ crc
    for length, most, a, b, c, d in _FOLDS:
        while bits > length:
            size = bits - length if bits - length < most else most
            head = value & ((1 << size) - 1)
            product = head ^ (head << a) ^ (head << b) ^ (head << c) ^ (head << d)
            value = (value >> size) ^ (product << (most - size))
            bits -= size
    return value.to_bytes(bits // 8, "little")


_MASK = (1 << 64) - 1
_LOW = (1 << 32) - 1
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
_P64_3, _P64_4, _P64_5 = 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MIX_1, _MIX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_STRIPE_BYTES = 64
_STRIPES_PER_BLOCK = 16  # (size of the secret - stripe) / 8 bytes consumed per stripe
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


_two_words = struct.Struct("<2Q").unpack_from


def _half(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


_FIRST_LANES = (_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1)
_LAST_KEY = struct.unpack_from("<8Q", _SECRET, 192 - 64)
_KEYS = tuple(struct.unpack_from("<8Q", _SECRET, 8 * n) for n in range(_STRIPES_PER_BLOCK))
_TAIL_KEY = struct.unpack_from("<8Q", _SECRET, 192 - 64 - 7)
_MERGE_KEY = struct.unpack_from("<8Q", _SECRET, 11)


def xxh3_64(data: bytes) -> int:
    """Compute the 64-bit hash."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data, size)
    if size <= 128:
        return _up_to_128(data, size)
    if size <= 240:
        return _up_to_240(data, size)
    return _long(data, size)


def _avalanche(value: int) -> int:
    value = ((value ^ (value >> 37)) * _MIX_1) & _MASK
    return value ^ (value >> 32)


def _old_avalanche(value: int) -> int:
    value = ((value ^ (value >> 33)) * _P64_2) & _MASK
    value = ((value ^ (value >> 29)) * _P64_3) & _MASK
    return value ^ (value >> 32)


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product ^ (product >> 64)) & _MASK


def _mix(data: bytes, at: int, secret_at: int) -> int:
    (low, high), (low_key, high_key) = _two_words(data, at), _two_words(_SECRET, secret_at)
    return _fold(low ^ low_key, high ^ high_key)


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _up_to_16(data: bytes, size: int) -> int:
    if size == 0:
        return _old_avalanche(_word(_SECRET, 56) ^ _word(_SECRET, 64))
    if size <= 3:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8
        return _old_avalanche(combined ^ _half(_SECRET, 0) ^ _half(_SECRET, 4))
    if size <= 8:
        value = (_half(data, size - 4) + (_half(data, 0) << 32)) ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
        value = ((value ^ _rotate(value, 49) ^ _rotate(value, 24)) * _MIX_2) & _MASK
        value = ((value ^ ((value >> 35) + size)) * _MIX_2) & _MASK
        return value ^ (value >> 28)
    low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
    high = _word(data, size - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche((size + swapped + high + _fold(low, high)) & _MASK)


def _up_to_128(data: bytes, size: int) -> int:
    total = size * _P64_1
    for step in range((size - 1) // 32, -1, -1):
        total += _mix(data, 16 * step, 32 * step) + _mix(data, size - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total & _MASK)


def _up_to_240(data: bytes, size: int) -> int:
    total = size * _P64_1 + sum(_mix(data, 16 * n, 16 * n) for n in range(8))
    total = _avalanche(total & _MASK)
    total += sum(_mix(data, 16 * n, 16 * (n - 8) + 3) for n in range(8, size // 16))
    return _avalanche((total + _mix(data, size - 16, 136 - 17)) & _MASK)


def _long(data: bytes, size: int) -> int:
    lanes: Sequence[int] = _FIRST_LANES
    for stripe in range((size - 1) // _STRIPE_BYTES):
        step = stripe % _STRIPES_PER_BLOCK
        lanes = _accumulate(lanes, struct.unpack_from("<8Q", data, stripe * _STRIPE_BYTES), _KEYS[step])
        if step == _STRIPES_PER_BLOCK - 1:
            lanes = [_scramble(lane & _MASK, key) for lane, key in zip(lanes, _LAST_KEY, strict=True)]
    lanes = _accumulate(lanes, struct.unpack_from("<8Q", data, size - _STRIPE_BYTES), _TAIL_KEY)
    keyed = [lane & _MASK ^ key for lane, key in zip(lanes, _MERGE_KEY, strict=True)]
    total = size * _P64_1 + sum(_fold(keyed[n], keyed[n + 1]) for n in range(0, 8, 2))
    return _avalanche(total & _MASK)


def _scramble(lane: int, key: int) -> int:
    return ((lane ^ (lane >> 47) ^ key) * _P32_1) & _MASK


def _accumulate(lanes: Sequence[int], words: Sequence[int], key: Sequence[int]) -> Sequence[int]:
    """Mix 64 bytes in. Written out, and cut to 64 bits by the caller only: a third less time than a loop."""
    a, b, c, d, e, f, g, h = lanes
    p, q, r, s, t, u, v, w = words
    k, l, m, n, o, x, y, z = map(xor, words, key)  # noqa: E741
    return (
        a + q + (k & _LOW) * (k >> 32),
        b + p + (l & _LOW) * (l >> 32),
        c + s + (m & _LOW) * (m >> 32),
        d + r + (n & _LOW) * (n >> 32),
        e + u + (o & _LOW) * (o >> 32),
        f + t + (x & _LOW) * (x >> 32),
        g + w + (y & _LOW) * (y >> 32),
        h + v + (z & _LOW) * (z >> 32),
    )


NONE, CRC32C, XXHASH, XXHASH64, XXH3 = range(5)  # ChecksumType in RocksDB's table.h
KINDS = {NONE: "none", CRC32C: "crc32c", XXHASH: "xxhash", XXHASH64: "xxhash64", XXH3: "xxh3"}
VERIFIED_KINDS = frozenset({CRC32C, XXH3})
"""The kinds that Kafka Streams' RocksDB releases write. The two others need an explicit setting by the user;
their blocks are read without verification."""

_LAST_BYTE_PRIME = 0x6B9083D9  # format.cc ModifyChecksumForLastByte


def compute(kind: int, data: bytes) -> int | None:
    """Compute the 32-bit checksum of a block with its compression byte, or of a footer; None = not verified."""
    if kind == CRC32C:
        return masked_crc32c(data)
    if kind == XXH3:
        return (xxh3_64(data[:-1]) ^ data[-1] * _LAST_BYTE_PRIME) & 0xFFFFFFFF if data else 0
    return None


def context_modifier(base: int, offset: int) -> int:
    """Compute what format version 6 adds to a checksum for the place at which the block is."""
    return base ^ ((offset + (offset >> 32)) & 0xFFFFFFFF) if base else 0
