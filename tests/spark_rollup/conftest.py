"""One SparkSession and one audit of all stories for the whole run."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from agent.contract.audited import AGENT
from spark_rollup import clock
from spark_rollup.correlate import RULES
from spark_rollup.fleet import reduce, thin
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.reduce import Question
from spark_rollup.spark import jars, session
from tests.conftest import TABLES
from tests.spark_rollup.support.fleet import HORIZON_S, MORE, STORIES, Fleet, at_us
from tests.spark_rollup.support.plain import events_of

DELTA_JARS = Path(sys.prefix) / "spark-jars" / "delta"

LONG_SESSION = {
    "spark.driver.memory": "3g",
    "spark.driver.defaultJavaOptions": "-Xms3g -Xmn1g -XX:MetaspaceSize=256m",
}
"""With tests of bronze, many tests fill a heap that one run of the command does not; Java would always collect it."""

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
        conf=LONG_SESSION if asked else None,
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
    """Rows of every table, by story; and the events that they were made of."""

    frames: Mapping[str, Sequence[Row]]
    events: Sequence[Event]
    asked: Question

    def rows(self, frame: str, story: str) -> list[Row]:
        """Take a table's rows of one story."""
        return [row for row in self.frames[frame] if row["namespace"] == story]

    def findings(self, story: str, rule: str) -> list[Row]:
        """Take one rule's findings of one story."""
        return [row for row in self.rows("findings", story) if row["detector"] == rule]

    def finding(self, story: str, rule: str) -> Row:
        """Take the only finding of a rule in a story."""
        (row,) = self.findings(story, rule)
        return row

    def check(self, story: str, rule: str, expected: Mapping[str, Any]) -> None:
        """Compare with what `fleet.says` expects."""
        found = self.findings(story, rule)
        assert len(found) == bool(expected)
        for name, value in expected.items() if found else ():
            (row,) = found
            if name == "loud":
                shown = [row[x] for x in ("severity", "confidence", "status")]
                assert shown[: len(value.split())] == value.split()
            elif name == "evidence":
                assert any(step["what"].startswith(value) for step in row["evidence"]), row["evidence"]
            elif name in ("summary", "next_action"):
                assert all(x in row[name] for x in ((value,) if isinstance(value, str) else value)), row[name]
            else:
                assert row[name] == value


def told() -> list[Fleet]:
    """Collect all stories of the imported test modules."""
    return [*STORIES.values(), *(fleet for tell in MORE for fleet in tell())]


@pytest.fixture(scope="session")
def audited() -> Audited:
    """Audit all stories of the imported test modules in one go, without Spark."""
    as_of_us = at_us(HORIZON_S)
    asked = Question(as_of_us, rules=RULES)
    events = events_of(line for fleet in told() for line in fleet.lines())
    events = [x for x in events if x.observed_at_us <= as_of_us]
    pods = thin.of_pods(events)
    stories = [one for where, given in pods.items() if (one := reduce.story(where, given, asked))]
    applications = thin.of_applications(events)
    known, said = reduce.by_namespace(stories), reduce.said_of(stories)
    rows: dict[str, list[Row]] = defaultdict(list)
    for one in stories:
        if one.pod.heard:
            rows["heard"].append({"namespace": one.namespace, **one.pod.heard._asdict()})
    for place in {*reduce.places(known), *applications}:
        where = dict(zip(("namespace", "application_id"), place, strict=True))
        given = applications.get(place) or thin.OfApplication()
        app, _ = reduce.application(place, given, said.get(place, []), known.get(place[0], {}), asked)
        found: Mapping[str, Sequence[Any]] = {
            "held": [x for task in app.tasks.values() for x in task.holds],
            "sizes": given.readings,
            "lives": app.lives,
            "sightings": app.sightings,
            "settings": [app.settings] if app.settings else [],
        }
        for name, own in found.items():
            rows[name] += [where | x._asdict() for x in own]
    everything = reduce.tables(stories, applications, asked)
    frames = {**rows, **everything}
    frames["findings"] = [row for row in everything["findings"] if row["reported_by"] != AGENT]
    frames["alone"] = [row for row in everything["findings"] if row["reported_by"] == AGENT]
    frames["doubts"] = [row for row in everything["known_pods"] if row["doubt"] is not None]
    return Audited(frames, events, asked)
