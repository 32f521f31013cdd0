"""Recorded runs of real releases, from file operations to fleet verdicts."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from spark_rollup.cli import main as rollup
from spark_rollup.correlate import RULES
from tests.support.recorded_fleet import EXPECTED, Verdict, replayed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

TWINS = {rule.meta.id: rule.meta.twin for rule in RULES if rule.meta.twin is not None}
BUGS = (
    "kafka-8187-stage1-2.2.1",
    "kafka-8187-stage2-2.0.1",
    "kafka-7672-eos",
    "kafka-9891-2.5.0",
    "kafka-20685-4.1.2",
    "torn-clean-3.9.2",
)
QUICK = (*BUGS, *sorted({twin.recording for twin in TWINS.values()}))
"""Replayed in every run of the tests; the others only by `pytest -m heavy`."""

Row = Mapping[str, Any]


def audit(folders: list[Path], work: Path) -> Mapping[str, list[Row]]:
    """Take all the way from traces to the fleet's findings, by scenario."""
    applications = replayed(folders, work / "events")
    with redirect_stdout(io.StringIO()) as printed:
        rollup(["audit", "--input", str(work / "events"), "--output", str(work / "out"), "--json"])
    found: dict[str, list[Row]] = {folder.name: [] for folder in folders}
    for line in printed.getvalue().splitlines():
        row = json.loads(line)
        if row["reported_by"] == "agent":
            continue
        # a second application in one state directory is known by its pods only
        name = applications.get(row["application_id"]) or (row["pod"] or row["pods"][0]).rsplit(".", 1)[0]
        found[name].append(row)
    return found


def loud(rows: Iterable[Row]) -> set[Verdict]:
    """Take rule, task, pod and severity of what is a warning or worse; all of it must be confirmed.

    `stale-eos-state` is as sure as the agent, and the recording ends before that one can be.
    """
    rows = [row for row in rows if row["severity"] != "info"]
    assert {row["confidence"] for row in rows if row["detector"] != "stale-eos-state"} <= {"confirmed"}
    return {
        (row["detector"], row["task_id"], row["pod"] and row["pod"].rsplit(".", 1)[1], row["severity"])
        for row in rows
    }


def of(rows: Iterable[Row], rule: str) -> list[Row]:
    """Take one rule's findings."""
    return [row for row in rows if row["detector"] == rule]


@pytest.fixture(scope="module")
def verdicts(spark, repository, tmp_path_factory) -> Mapping[str, list[Row]]:
    """Take the quick scenarios from traces to findings, all in one audit."""
    traces = repository / "tests" / "data" / "traces"
    return audit([traces / name for name in QUICK], tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize("name", QUICK)
def test_the_fleet_says_what_happened(verdicts, name):
    """Every bug is confirmed on its task and pod, and a correct run raises nothing of warning or above."""
    assert loud(verdicts[name]) == EXPECTED.get(name, set())


@pytest.mark.parametrize("rule", TWINS)
def test_a_rules_benign_twin_shows_what_its_alerts_are_tested_with(verdicts, rule):
    """What the rule's metadata says of the recording is what the audit says of it."""
    twin = TWINS[rule]
    severities = {row["severity"] for row in of(verdicts[twin.recording], rule) if row["status"] == "open"}
    assert severities == ({twin.shows.value} if twin.shows else set())


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_every_recording_of_several_pods(spark, repository, tmp_path):
    """All recordings with more than one pod, those of the quick tests included."""
    traces = repository / "tests" / "data" / "traces"
    folders = [
        path.parent
        for path in sorted(traces.glob("*/scenario.json"))
        if len(json.loads(path.read_text())["pods"]) > 1 or path.parent.name in EXPECTED
    ]
    found = audit(folders, tmp_path)
    assert {name: loud(rows) for name, rows in found.items() if loud(rows)} == dict(EXPECTED)


def test_stage_1_of_8187_confirms_the_agents_suspicions(verdicts):
    """Four standbys lie unowned while their process lives: nobody but the fleet can confirm it."""
    rows = of(verdicts["kafka-8187-stage1-2.2.1"], "missing-standby")
    assert {(row["status"], len(row["confirms"])) for row in rows} == {("open", 1)}


def test_stage_2_of_8187_is_borne_out_by_the_replica(verdicts):
    """The old offset on the fresh stores, with the sizes of both copies, and the entries that are missing."""
    rows = verdicts["kafka-8187-stage2-2.0.1"]
    found = of(rows, "resurrected-checkpoint")[0]
    assert "held 2050 puts at offset 2050" in found["summary"]
    assert "holds 50 at offset 2050" in found["summary"]
    assert {pod.rsplit(".", 1)[1] for pod in found["pods"]} == {"pod-a", "pod-b"}
    diverged = of(rows, "diverged-replica")[0]
    assert "at offset 2050" in diverged["summary"]
    assert set(diverged["confirms"]) & {
        item for row in of(rows, "resurrected-checkpoint") for item in row["confirms"]
    }


def test_7672_names_both_owners(verdicts):
    """The previous owner's size confirms that the new one never restored."""
    (found,) = of(verdicts["kafka-7672-eos"], "unrestored-task")
    assert [pod.rsplit(".", 1)[1] for pod in found["pods"]] == ["pod-a", "pod-b"]


def test_untrusted_state_is_followed(verdicts):
    """20685: no other pod has the state; 9891: the pod that took over restored from what the suspect wrote."""
    (alone,) = of(verdicts["kafka-20685-4.1.2"], "stale-eos-state")
    assert "no other pod has it so far" in alone["summary"]
    spread = of(verdicts["kafka-9891-2.5.0"], "stale-eos-state")
    assert all("tainted since: kafka-9891-2.5.0.pod-b" in row["summary"] for row in spread)
