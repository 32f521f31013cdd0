"""Wherever applications are judged, and in whatever order their rows come, the same is said of them."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest
from pyspark.sql import DataFrame

from spark_rollup.correlate import RULES
from spark_rollup.fleet.application import Application
from spark_rollup.fleet.gathered import OF_APPLICATION, OF_TASK, Place, application_of, row_of
from spark_rollup.fleet.judge import judge
from spark_rollup.fleet.rows import Hold, Life, Settings
from spark_rollup.judging import job

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def lines(frame: DataFrame) -> Counter[str]:
    """Write each row as text."""
    return Counter(json.dumps(row.asDict(recursive=True), sort_keys=True) for row in frame.collect())


def test_workers_say_what_the_driver_says(audited, monkeypatch):
    """All stories: one application after the other here, and many side by side in Spark's Python workers."""
    here = job.judged(audited.facts, RULES, None)
    monkeypatch.setattr(job, "is_whole", lambda spark: False)
    there = job.judged(audited.facts, RULES, None)
    for name in ("findings", "restarts", "churn", "known_pods"):
        assert lines(getattr(here, name)) == lines(getattr(there, name)), name


def test_the_order_of_rows_says_nothing(audited):
    """Spark hands them over in any."""
    facts = audited.facts
    pods = job._pods(facts.said.sparkSession, facts)
    rows: dict[Place, list[tuple[str, object]]] = {}
    for field in (*OF_TASK, *OF_APPLICATION):
        for namespace, application, *values in job.facts_frame(facts, field).collect():
            rows.setdefault((namespace, application), []).append((field, row_of(field, values)))

    def said(place: Place, given: list[tuple[str, object]]) -> Counter[str]:
        app = application_of(place, given, pods[place[0]], facts.as_of_us, facts.since_us, None)
        return Counter(json.dumps(found, sort_keys=True) for found in judge(app, RULES))

    dice = Random(7)
    for place, given in rows.items():
        expected = said(place, given)
        mixed = dice.sample(given, len(given))
        assert said(place, mixed) == expected, place


@pytest.mark.slow  # it takes ten seconds; a loop over all tasks for each task takes minutes
def test_twenty_thousand_tasks_are_short_at_once():
    """A rolling restart of a large application: no rule asks every task about every other one."""
    tasks, minute = 20_000, 60_000_000
    app = Application("shop", "orders", 60 * minute, 0, {})
    app.settings = Settings(1, "at_least_once", None, (2, 2, 1), (2, 2, 1), 10_000, 0)
    rows: list[tuple[str, object]] = [("settings", app.settings)]
    rows += [("lives", Life(f"pod-{number}", 0, 60 * minute)) for number in range(200)]
    for number in range(tasks):
        task, pod = f"{number % 7}_{number // 7}", f"pod-{number % 200}"
        rows.append(("holds", Hold(task, pod, number, 60 * minute, lasting=True, cleaner=False)))
        left = 5 * minute + number
        rows.append(
            ("holds", Hold(task, f"pod-{(number + 1) % 200}", number, left, lasting=False, cleaner=False))
        )
    found = Counter(
        row["detector"]
        for table, row in judge(application_of(app.where, rows, {}, app.as_of_us, 0, None), RULES)
        if table == "findings"
    )
    assert found["missing-standby"] == tasks
