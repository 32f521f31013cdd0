"""Recorded runs of real releases, from file operations to fleet verdicts."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main as agent
from spark_rollup.cli import main as rollup

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.xdist_group("spark")]

SCENARIOS = (
    "kafka-8187-stage1-2.2.1",
    "kafka-8187-stage2-2.0.1",
    "kafka-7672-eos",
    "kafka-20685-4.1.2",
    "control-8187-2.2.2",
    "benign-move-3.9.2",
    "benign-rolling-standby-3.9.2",
)
SHORT = {"session_timeout_ms": 6000, "probing_rebalance_interval_ms": 1000}
"""The recordings last about a minute; their session timeout is 6 s."""

Row = Mapping[str, Any]


@pytest.fixture(scope="module")
def verdicts(spark, repository, tmp_path_factory) -> Mapping[str, list[Row]]:
    """Replay every pod of every scenario as an agent would have seen it, then audit all of them at once."""
    source, output = tmp_path_factory.mktemp("events"), tmp_path_factory.mktemp("out")
    applications: dict[str, str] = {}
    for name in SCENARIOS:
        folder: Path = repository / "tests" / "data" / "traces" / name
        scenario = json.loads((folder / "scenario.json").read_text())
        applications[scenario["application_id"]] = name
        settings = [f"{key}={value}" for key, value in {**scenario["settings"], **SHORT}.items()]
        for pod in scenario["pods"]:
            arguments = [
                "replay",
                str(folder / pod["trace"]),
                "--pod",
                f"{name}.{pod['name']}",
                "--events",
                str(source),
            ]
            with redirect_stdout(io.StringIO()):
                assert agent([*arguments, *(word for text in settings for word in ("--set", text))]) in (0, 1)
    with redirect_stdout(io.StringIO()) as printed:
        rollup(["audit", "--input", str(source), "--output", str(output), "--json"])
    found: dict[str, list[Row]] = {name: [] for name in SCENARIOS}
    for line in printed.getvalue().splitlines():
        row = json.loads(line)
        found[
            applications[row["application_id"]] if row["application_id"] else row["pod"].rsplit(".", 1)[0]
        ].append(row)
    return found


def loud(rows: list[Row]) -> set[tuple[str, str, str, str]]:
    """Take rule, task, pod and confidence of what is critical."""
    return {
        (row["detector"], row["task_id"], row["pod"].rsplit(".", 1)[1], row["confidence"])
        for row in rows
        if row["severity"] == "critical"
    }


def test_stage_1_of_8187_is_confirmed(verdicts):
    """Four standbys lie unowned while their process lives: nobody but the fleet can confirm it."""
    rows = verdicts["kafka-8187-stage1-2.2.1"]
    assert loud(rows) == {("missing-standby", f"0_{n}", "pod-a", "confirmed") for n in range(4)}
    assert {row["status"] for row in rows} == {"open"}


def test_stage_2_of_8187_is_confirmed(verdicts):
    """The old offset on the fresh stores, with the sizes of both copies, and the shortage before it."""
    rows = verdicts["kafka-8187-stage2-2.0.1"]
    rules = ("resurrected-checkpoint", "missing-standby")
    assert loud(rows) == {(rule, f"0_{n}", "pod-a", "confirmed") for rule in rules for n in range(4)}
    found = next(row for row in rows if row["detector"] == "resurrected-checkpoint")
    assert "held 2050 puts at offset 2050" in found["summary"]
    assert "holds 50 at offset 2050" in found["summary"]
    assert {pod.rsplit(".", 1)[1] for pod in found["pods"]} == {"pod-a", "pod-b"}


def test_7672_names_both_owners(verdicts):
    """The previous owner's size confirms that the new one never restored."""
    rows = verdicts["kafka-7672-eos"]
    assert loud(rows) == {("unrestored-task", "0_1", "pod-a", "confirmed")}
    (found,) = rows
    assert [pod.rsplit(".", 1)[1] for pod in found["pods"]] == ["pod-a", "pod-b"]


def test_20685_is_followed(verdicts):
    """The skipped wipe is damage of the fleet, too, and no other pod has the state."""
    rows = verdicts["kafka-20685-4.1.2"]
    assert loud(rows) == {("stale-eos-state", "0_0", "pod-a", "confirmed")}
    assert "no other pod has it so far" in rows[0]["summary"]


@pytest.mark.parametrize("name", ["control-8187-2.2.2", "benign-move-3.9.2", "benign-rolling-standby-3.9.2"])
def test_correct_runs_are_quiet(verdicts, name):
    """The fixed release, an ordinary move and a rolling restart with standbys raise nothing at all."""
    assert verdicts[name] == []
