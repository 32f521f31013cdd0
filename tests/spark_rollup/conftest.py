"""One SparkSession and one audit of all stories for the whole run."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_rollup import audit, clock
from spark_rollup.bronze import dedupe, load
from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.config import AGENT, AuditOptions
from spark_rollup.correlate import RULES
from spark_rollup.facts import coverage, sizes
from spark_rollup.judging.base import Facts
from spark_rollup.judging.job import judged
from spark_rollup.report import lanes
from spark_rollup.spark import jars, session
from tests.conftest import TABLES
from tests.spark_rollup.support.fleet import HORIZON_S, MORE, STORIES, at_us

Row = Mapping[str, object]


DELTA_JARS = Path(sys.prefix) / "spark-jars" / "delta"

LONG_SESSION = {
    "spark.driver.memory": "3g",
    "spark.driver.defaultJavaOptions": "-Xms3g -Xmn1g -XX:MetaspaceSize=256m",
}
"""Hundreds of tests fill a heap that one run of the command does not; Java would collect it all the time."""

LATER_US = at_us(400 * 86_400)
"""What the rollup takes for now: after all stories, whatever the day is on which they are told."""


@pytest.fixture(scope="session", autouse=True)
def later() -> Generator[None, None, None]:
    """Stop the clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now_us", lambda: LATER_US)
        yield


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Generator[SparkSession, None, None]:
    """Start Spark once, with Delta if a test asks for it, as a command does: its rules make all planning slower."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    asked = any(TABLES in getattr(item, "fixturenames", ()) for item in request.session.items)
    found = jars.jars_in(DELTA_JARS) if asked else []
    started = session.build_session(
        0,
        master="local[2]",
        partitions=1,
        jars=found,
        delta=bool(found),
        conf=LONG_SESSION,
        lasting=True,
    )
    yield started
    started.stop()


@pytest.fixture(scope="session")
def delta(spark: SparkSession) -> SparkSession:
    """Give the session to tests of bronze, which is kept in Delta tables."""
    if not jars.jars_in(DELTA_JARS):
        pytest.skip("Delta's jars are fetched by tools/setup_delivery.sh: make test-services")
    return spark


@dataclass(frozen=True)
class Audited:
    """Rows of every frame, by story; and the facts that they were made of."""

    frames: Mapping[str, Sequence[Row]]
    facts: Facts

    def rows(self, frame: str, story: str) -> list[Row]:
        """Take a frame's rows of one story."""
        return [row for row in self.frames[frame] if row["namespace"] == story]

    def findings(self, story: str, rule: str) -> list[Row]:
        """Take one rule's findings of one story."""
        return [row for row in self.rows("findings", story) if row["detector"] == rule]

    def finding(self, story: str, rule: str) -> Row:
        """Take the only finding of a rule in a story."""
        (row,) = self.findings(story, rule)
        return row


@pytest.fixture(scope="session")
def audited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """Audit all stories of the imported test modules in one go."""
    source = tmp_path_factory.mktemp("segments")
    for fleet in STORIES.values():
        fleet.write(source)
    for tell in MORE:
        for fleet in tell():
            fleet.write_as_one(source)
    loaded = load.load(spark, source)
    once = dedupe.one_row_per_id(loaded.events).drop("line")
    events = once.withColumn(ROUTINE, is_routine()).localCheckpoint()
    as_of_us = at_us(HORIZON_S)
    facts = audit.gather(events, AuditOptions(source, Path("unused"), as_of_us), as_of_us)
    frames: dict[str, DataFrame] = {
        "held": facts.held,
        "heard": facts.heard,
        "sizes": sizes.sizes(events, sizes.single_stores(events)),
        "lives": facts.lives,
        "members": facts.members,
        "sightings": facts.sightings,
        "gaps": facts.gaps,
        "settings": facts.settings,
        "local": facts.local,
        "timelines": lanes.timelines(facts),
        "coverage": coverage.coverage(facts.heard, facts.gaps, as_of_us),
        "pods": coverage.pods(facts.members, facts.held, facts.heard, facts.gaps, as_of_us),
    }
    found = judged(facts, RULES, None)
    rows = {
        name: collected(frame)
        for name, frame in zip(frames, audit.compute_all(*frames.values()), strict=True)
    }
    everything = collected(found.findings)
    rows["findings"] = [row for row in everything if row["reported_by"] != AGENT]
    rows["alone"] = [row for row in everything if row["reported_by"] == AGENT]
    rows["restarts"] = collected(found.restarts)
    rows["doubts"] = [row for row in collected(found.known_pods) if row["doubt"] is not None]
    return Audited(rows, facts)


def collected(frame: DataFrame) -> list[Row]:
    """Collect a frame as plain values."""
    return [row.asDict(recursive=True) for row in frame.collect()]
