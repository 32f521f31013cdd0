"""Settings that are not on disk: checked, typed, per application."""

from __future__ import annotations

import pytest

from agent.inventory.settings import KEYS, KEYS_BY_NAME, ApplicationSettings, Setting


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("processing_guarantee", ["at_least_once", "exactly_once_v2"], ["eos", "", "EXACTLY_ONCE"]),
        ("kafka_streams_version", ["3.9.2", "4.2", "2.8.x"], ["three", "3", ""]),
        ("num_standby_replicas", ["0", "2"], ["-1", "1.5", ""]),
        ("state_cleanup_delay_ms", ["600000", "1"], ["0", "-1", "1s", "--1", ""]),
        ("state_cleanup_dir_max_age_ms", ["-1", "0", "86400000"], ["-2", "1d"]),
        ("commit_interval_ms", ["100", "0"], ["x", "-1", "nan"]),
        ("delete_retention_ms", ["0"], ["-1"]),
        ("upgrade_from", ["2.3"], ["old"]),
    ],
)
def test_checks(name, good, bad):
    """Each key takes what Kafka Streams takes and refuses the rest with a reason."""
    for text in good:
        KEYS_BY_NAME[name].check(text)
    for text in bad:
        with pytest.raises(ValueError, match=r"\w"):
            KEYS_BY_NAME[name].check(text)


def test_keys_are_listed_once():
    """Names are unique."""
    assert len(KEYS_BY_NAME) == len(KEYS)


GUARANTEES = {
    "at_least_once": False,
    "exactly_once": True,
    "exactly_once_beta": True,
    "exactly_once_v2": True,
}


@pytest.mark.parametrize(("guarantee", "exactly_once"), GUARANTEES.items())
def test_guarantee(guarantee, exactly_once):
    """Everything but at-least-once is exactly-once."""
    settings = ApplicationSettings({"processing_guarantee": Setting(guarantee, "flag")})
    assert settings.exactly_once is exactly_once
