"""What is chosen for Spark by the size of the input, without starting it."""

from __future__ import annotations

from spark_rollup.session import SMALL_INPUT_BYTES, TINY_INPUT_BYTES, sql_settings

PARTITIONS = "spark.sql.shuffle.partitions"
ADAPTIVE = "spark.sql.adaptive.enabled"


def test_small_inputs_are_run_without_ceremony():
    """One or two partitions, and no planning that costs more than it saves."""
    assert sql_settings(TINY_INPUT_BYTES - 1)[PARTITIONS] == "1"
    assert sql_settings(TINY_INPUT_BYTES)[PARTITIONS] == "2"
    assert sql_settings(SMALL_INPUT_BYTES - 1)[ADAPTIVE] == "false"


def test_large_and_unknown_inputs_are_left_to_spark():
    """Spark's own planning holds as soon as it pays, and where nobody knows the size yet."""
    for size, partitions in ((SMALL_INPUT_BYTES, "16"), (1 << 30, "32"), (1 << 40, "200"), (None, "200")):
        assert sql_settings(size) == {PARTITIONS: partitions}


def test_a_wish_wins():
    """Partitions that were asked for are taken."""
    assert sql_settings(0, 7)[PARTITIONS] == sql_settings(None, 7)[PARTITIONS] == "7"
