"""Recorded runs of real releases, from file operations to fleet verdicts."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main as agent
from agent.cli.known import RecordedStory
from agent.config import load_config
from agent.contract.units import Remedy
from spark_rollup.cli import main as rollup
from spark_rollup.correlate import RULES
from tests.spark_rollup.support.fleet import damaged
from tests.support.recorded_fleet import EXPECTED, MORE, Verdict, replayed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

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

TOLD = damaged()
"""A story beside the recordings."""


@dataclass(frozen=True)
class Run:
    """An audit by the command line: its exit code, what it printed, and its directories."""

    code: int
    printed: list[Row]
    segments: Path
    out: Path


def audit(work: Path) -> Run:
    """Audit what agents shipped to `events`."""
    segments, out = work / "events", work / "out"
    with redirect_stdout(io.StringIO()) as printed:
        code = rollup(["audit", "--input", str(segments), "--output", str(out), "--json"])
    return Run(code, [json.loads(line) for line in printed.getvalue().splitlines()], segments, out)


def by_scenario(rows: Iterable[Row], applications: Mapping[str, str]) -> Mapping[str, list[Row]]:
    """Sort what rules found by scenario; told stories, which have a namespace, are left out."""
    found: dict[str, list[Row]] = {name: [] for name in applications.values()}
    for row in rows:
        if row["reported_by"] == "agent" or row["namespace"] == TOLD.name:
            continue
        # a second application in one state directory is known by its pods only
        name = applications.get(row["application_id"]) or (row["pod"] or row["pods"][0]).rsplit(".", 1)[0]
        found[name].append(row)
    return found


def loud(rows: Iterable[Row], *unsure: str) -> set[Verdict]:
    """Take rule, task, pod and severity of what is a warning or worse; all of it must be confirmed.

    `stale-eos-state`, what confirms an agent's suspicion of it, and what is `unsure`, is as sure as the agent.
    """
    rows = [row for row in rows if row["severity"] != "info"]
    suspicions = {one for row in rows if row["confidence"] == "suspected" for one in row["confirms"]}
    wipes = {one for row in of(rows, "stale-eos-state") for one in row["confirms"]} & suspicions
    for row in rows:
        as_sure = row["detector"] in ("stale-eos-state", *unsure) or wipes & set(row["confirms"])
        assert as_sure or row["confidence"] == "confirmed"
    return {
        (row["detector"], row["task_id"], row["pod"] and row["pod"].rsplit(".", 1)[1], row["severity"])
        for row in rows
    }


def of(rows: Iterable[Row], rule: str) -> list[Row]:
    """Take one rule's findings."""
    return [row for row in rows if row["detector"] == rule]


@pytest.fixture(scope="module")
def replays(repository, tmp_path_factory) -> tuple[Path, Mapping[str, str]]:
    """Replay the quick scenarios, and tell one story beside them."""
    traces, work = repository / "tests" / "data" / "traces", tmp_path_factory.mktemp("recorded")
    known = replayed([traces / name for name in QUICK], work / "events")
    TOLD.write(work / "events")
    return work, known


@pytest.fixture(scope="module")
def run(spark, replays) -> Run:
    """Take all of it from traces to findings, in one audit."""
    return audit(replays[0])


@pytest.fixture(scope="module")
def incidents(run, replays) -> Mapping[str, list[Row]]:
    """Give the open incidents of each scenario that are more than remarks."""
    rows = [json.loads(line) for line in (run.out / "incidents.jsonl").read_text().splitlines()]
    found: dict[str, list[Row]] = {name: [] for name in replays[1].values()}
    for row in rows:
        if row["status"] == "open" and row["severity"] != "info" and row["namespace"] != TOLD.name:
            found[replays[1][row["application_id"]]].append(row)
    return found


@pytest.fixture(scope="module")
def verdicts(run, replays) -> Mapping[str, list[Row]]:
    """Give the findings of each scenario."""
    return by_scenario(run.printed, replays[1])


def test_every_output_says_the_same(run):
    """Findings on stdout and in every output, with their evidence; something critical is exit code 1."""
    assert run.code == 1
    (damage,) = [row for row in run.printed if row["namespace"] == TOLD.name and row["confirms"]]
    assert (damage["detector"], damage["severity"], damage["confidence"], damage["pods"]) == (
        "resurrected-checkpoint",
        "critical",
        "confirmed",
        ["pod-a", "pod-b"],
    )
    assert damage["opened_at"] == "2026-11-18T11:08:01.000000Z"
    assert set(damage["evidence"][0]) == {"at", "what", "where"}
    assert [json.loads(line) for line in (run.out / "findings.jsonl").read_text().splitlines()] == run.printed
    parts = [gzip.decompress(part.read_bytes()).decode() for part in run.segments.rglob("*.gz")]
    lines = [line for part in parts for line in part.splitlines()]
    marker = json.loads((run.out / "_SUCCESS.json").read_text())
    assert marker["watermark"] == max(json.loads(line)["time"] for line in lines)
    for name in ("findings", "incidents", "timelines", "coverage", "pods", "quarantine"):
        assert list((run.out / name).glob("*.parquet")), name
    assert "pod-a holds 50 at offset 2050" in (run.out / "report.html").read_text()


@pytest.mark.parametrize("name", QUICK)
def test_the_fleet_says_what_happened(verdicts, name):
    """Every bug is confirmed on its task and pod, and a correct run raises nothing of warning or above."""
    assert loud(verdicts[name]) == EXPECTED.get(name, set())


@pytest.mark.parametrize("name", QUICK)
def test_a_bug_is_one_incident(incidents, run, name):
    """All tasks that it hit, and all that was found about them; its id is one that an agent gave it."""
    assert len(incidents[name]) == (name in BUGS)
    for one in incidents[name]:
        assert set(one["tasks"]) == {task for _, task, _, _ in EXPECTED[name]}
        assert one["id"] in one["absorbed"]
        members = {row["id"] for row in run.printed if row["incident_id"] == one["id"]}
        assert members == {row["id"] for row in one["findings"]}


def test_the_output_is_read_back_as_it_was_written(incidents, run):
    """`explain` and `plan` find every incident there, by its id and by those that agents gave it, with its step."""
    story = RecordedStory(str(run.out), load_config())
    for one in (one for found in incidents.values() for one in found):
        for id_ in (one["id"], *one["absorbed"]):
            found = story.incident(id_)
            assert found is not None
            assert found.next_action == one["next_action"]
            assert found.remedy in (Remedy.KEEP, Remedy.OTHER) or "remove" in found.next_action


def test_a_bug_of_four_tasks_has_one_next_step(incidents, run, capsys):
    """The copy that is wrong, and the same for the others; not that it is wrong. The script is about all of them."""
    (one,) = incidents["kafka-8187-stage2-2.0.1"]
    assert agent(["plan", one["id"], str(run.out)]) == 0
    assert "\nTASKS=(0_0 0_1 0_2 0_3)  #" in capsys.readouterr().out
    order = "in one stop: copy all directories, remove all, and only then start. For each task:"
    step = "Stop the instance on kafka-8187-stage2-2.0.1.pod-a, keep a copy"
    assert one["next_action"].startswith(f"Do this for tasks 0_0, 0_1, 0_2, 0_3 {order} {step}")


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
    known = replayed(folders, tmp_path / "events")
    found = by_scenario(audit(tmp_path).printed, known)
    said = {
        name: loud(rows, *("unrestored-task" for _ in {name} & MORE.keys())) for name, rows in found.items()
    }
    assert {name: words for name, words in said.items() if words} == {**EXPECTED, **MORE}


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
