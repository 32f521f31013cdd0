"""Checksums, against published values and the reference implementation's."""

from __future__ import annotations

import random

import pytest

from agent.observe.rocksdb import checksum
from agent.observe.rocksdb.checksum import crc32c, masked_crc32c, xxh3_64
from tests.support.every import every

RAMP = bytes(range(200))


@pytest.mark.parametrize(
    ("data", "value"),
    [  # RFC 3720, appendix B.4
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_crc32c(data, value):
    """The CRC has its published values."""
    assert crc32c(data) == value
    assert masked_crc32c(memoryview(data)) != value


@every("size", [*range(140), 1_056, 5_000, 16_383, 16_384, 16_385, 16_386, 16_388, 16_450, 40_000])
def test_folded_data_has_the_crc_of_the_definition(size):
    """Long data is not taken byte by byte: every length to which it is folded, and the seams of its pieces."""
    data = random.Random(size).randbytes(size)
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    assert crc32c(data) == crc32c(memoryview(data)) == crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "value"),
    [  # computed with the reference implementation; one per branch of the algorithm
        (b"", 0x2D06800538D394C2),
        (RAMP[:1], 0xC44BDFF4074EECDB),
        (RAMP[:3], 0x5F4299FC161C9CBB),
        (RAMP[:4], 0x60DAB036A58211F2),
        (RAMP[:8], 0x3A1C2D7C85AF88F8),
        (RAMP[:9], 0xE9612598145BB9DC),
        (RAMP[:16], 0x8355E3A6F61770DB),
        (RAMP[:17], 0x9EF341A99DE37328),
        (RAMP[:128], 0x85C6174C7FF4C46B),
        (RAMP[:129], 0xEC7642B431BA3E5A),
        (RAMP, 0xF42A8864FEAF0703),
        (bytes(range(256)) * 10, 0xCE94C58D4049E3E5),
    ],
)
def test_xxh3(data, value):
    """The hash equals the reference in each of its length classes."""
    assert xxh3_64(data) == value


def test_kinds():
    """The kinds that released Kafka Streams write are verified, the others say that they are not."""
    for kind in checksum.KINDS:
        assert (checksum.compute(kind, b"block") is not None) == (kind in checksum.VERIFIED_KINDS)


def test_context():
    """The place of a block changes its checksum only in files that ask for it."""
    assert checksum.context_modifier(0, 4096) == 0
    assert checksum.context_modifier(0x1234, 4096) != checksum.context_modifier(0x1234, 8192)
    assert 0 <= checksum.context_modifier(0xFFFFFFFF, 2**40 + 5) < 2**32
