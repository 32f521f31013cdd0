"""Rows of the driver become frames, few as part of the plan and many as data."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T

from spark_rollup.spark import rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

KIND = T.StructType(
    [
        T.StructField("name", T.StringType()),
        T.StructField("number", T.LongType()),
        T.StructField("parts", T.ArrayType(T.StructType([T.StructField("role", T.StringType())]))),
    ]
)
ODD: list[dict[str, Any]] = [
    {
        "name": 'a "quote", a \\ and \u00e9\n\U0001f600',
        "number": 1 << 60,
        "parts": [{"role": "x"}, {"role": None}],
    },
    {"name": "", "number": None, "parts": []},
    {"name": None, "number": -1, "parts": None},
]


@pytest.mark.parametrize("told", [ODD, []], ids=["odd", "none"])
def test_rows_come_out_as_they_went_in(spark, told):
    found = rows.frame_of(spark, told, KIND)
    assert found.schema == KIND
    assert [row.asDict(recursive=True) for row in found.collect()] == told


def test_many_rows_are_no_part_of_the_plan(spark, monkeypatch):
    monkeypatch.setattr(rows, "FEW_CHARS", 10)
    found = rows.frame_of(spark, ODD, KIND)
    assert "from_json" not in str(found._jdf.queryExecution().analyzed())
    assert {row["number"] for row in found.collect()} == {row["number"] for row in ODD}
