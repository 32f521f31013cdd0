"""What the soak calls growth, and that it fails for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.soak import ALLOWED, SAMPLES, Sample, judge

STEADY = Sample(blocks=200_000, resident_mib=45.0, descriptors=12, watches=303, findings=30)


def test_what_fills_up_in_the_first_quarter_is_no_growth() -> None:
    filling = [replace(STEADY, blocks=1_000 * number, findings=number) for number in range(SAMPLES // 4)]
    assert judge([*filling, *[STEADY] * (SAMPLES - len(filling))], 0)[1] == []


@pytest.mark.parametrize("name", ALLOWED)
def test_a_soak_fails_for_what_grows(name: str) -> None:
    began = getattr(STEADY, name)
    samples = [replace(STEADY, **{name: began * (1 + number / 1_000)}) for number in range(SAMPLES)]
    (failure,) = judge(samples, 0)[1]
    assert failure.startswith(f"FAILED: {name} grows by ")


def test_a_soak_fails_for_what_is_lost() -> None:
    assert judge([STEADY] * SAMPLES, 10)[1] == ["FAILED: last checkpoints are off by 10"]
