"""What the soak calls growth, and that it fails for it."""

from __future__ import annotations

import dataclasses

from tests.bench.soak import ALLOWED, JUDGED_MINUTES, Outcome, Sample, growth, judge

STEADY = Sample(0, 190, 180, 20, 12, 30_000, 0, 0, 0, 3, 1, 900)


def test_growth_is_told_per_hour_whatever_the_first_quarter_did() -> None:
    assert growth([500.0] * 15 + [100 + minute / 6 for minute in range(15, 60)], 1.0) == 10.0
    assert growth([100.0, 101.0] * 30, 1.0) == 0.0
    assert growth([1.0, 2.0, 3.0], 1.0) == 0.0, "too few to say anything"


def test_a_soak_fails_for_what_grows_and_for_what_is_lost() -> None:
    def failures(grows: str, by: float, unknown: int = 0) -> list[str]:
        samples = [
            dataclasses.replace(STEADY, at_s=60.0 * at, **{grows: getattr(STEADY, grows) + by * at / 60})
            for at in range(61)
        ]
        return judge(Outcome(samples, 1, 1, 1, unknown, 0, 0.0), 0.0, JUDGED_MINUTES)[1]

    assert failures("resident_mib", 0.0) == []
    assert failures("findings", 50.0) == [], "nobody promised that"
    for name in ALLOWED:
        (failure,) = failures(name, 5.0)
        assert failure.startswith(f"FAILED: {name} grows by ")
    (failure,) = failures("resident_mib", 0.0, unknown=1)
    assert "lost" in failure
