"""An incident of two tasks has one step, the same on every surface, and says the order before anything is done."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli import main
from agent.cli.incident_text import incident_text
from agent.contract.audited import FleetIncident
from agent.contract.audited import gather as of_fleet
from agent.contract.codec import Encoder
from agent.contract.events import Affected, Confidence, Kind, Level, Origin, Record, Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import Incident, gather, step_of
from agent.contract.units import Remedy
from agent.publish.page import render as agent_page
from agent.publish.page_data import PageData as AgentData
from spark_rollup.report import page as report
from spark_rollup.report.restart_answer import Known, Question, answer, with_steps
from spark_rollup.report.terminal import Shown, readable
from tests.spark_rollup.report.page import page_rows

STEP = (
    "Do this for tasks 0_0, 0_2 in one stop: copy all directories, remove all, and only then start."
    " For each task: BEFORE the next start: keep a copy of the task directory orders/0_0, remove that directory"
    " only, then start."
)


def found(task: str) -> Finding:
    step = f"keep a copy of the task directory orders/{task}, remove that directory only, then start."
    return Finding(
        f"{task[-1]:a<16}", "stale-eos-checkpoint", Level.EXPOSURE, Severity.CRITICAL, Confidence.SUSPECTED,
        Status.OPEN, "orders", task, "s", None, 1_700_000_000_000_000 + int(task[-1]), None, ("KAFKA-20685",),
        Affected.YES, (), f"Task {task}: 5 puts of store s.", (), f"BEFORE the next start: {step}",
        "uncommitted-data", "i-0000000000aa", remedy=Remedy.RESTORE,
    )  # fmt: skip


TWO = [found("0_0"), found("0_2")]


def row(one: Finding) -> dict[str, object]:
    """What the audit has of an agent's finding."""
    about = [{"incident_id": one.incident_id, "relation": "is", "mechanism": one.mechanism, "since_us": 1}]
    return page_rows.finding(
        **{name: value for name, value in one.body().items() if not name.endswith("_us")}, id=one.id,
        opened_at="2023-11-14T22:13:20.000000Z", pods=["pod-a"], confirms=[], reported_by="agent", lineage=[],
        local_incidents=about, seen_at="2023-11-14T22:13:21.000000Z",
    )  # fmt: skip


@pytest.fixture(scope="module")
def incident() -> Incident[Finding]:
    (one,) = gather(TWO)
    return one


@pytest.fixture(scope="module")
def fleet() -> list[FleetIncident]:
    return of_fleet(map(row, TWO))


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    encoder = Encoder(Origin("uid", "boot", "pod-a"))
    lines = (encoder.encode(Record(Kind.FINDING, n, x.body()), n) for n, x in enumerate(TWO, 1))
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    assert main(["explain", "i-0000000000aa", "--events", str(tmp_path)]) == 0
    return capsys.readouterr().out


def test_an_agents_surfaces_have_the_same_step(
    incident: Incident[Finding], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scan, `explain`, the agent's page, the alert's text, and the script of `plan`."""
    data = AgentData(
        1, "1", "pod-a", "/state", "", True, 1, 1, (), 0, (incident,), ((Severity.CRITICAL, 1),), (), ""
    )
    scan = incident_text(incident, paint=False, width=80, verbose=False)
    for surface in (scan, explained(tmp_path, capsys), agent_page(data), step_of(incident)):
        assert plain(surface).count(STEP) == 1
    assert (incident.remedy, incident.step_tasks) == (Remedy.RESTORE, ("0_0", "0_2"))


def test_the_fleets_surfaces_have_the_same_step(
    fleet: list[FleetIncident], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit's terminal, report and output, and the answer to a restart, once for all tasks of the pod."""
    (one,) = fleet
    assert one.next_action == STEP
    data = page_rows.page(findings=[row(x) for x in TWO], incidents=fleet)
    rows = [page_rows.answer(task_id=x.task_id, kinds=["damaged"], follow=[x.detector]) for x in TWO]
    told = with_steps(rows, fleet)
    lines, _ = answer(Known(told, data.known_pods), Question(0, pod="pod-a"))
    assert plain(" ".join(readable(data, Path("report.html"), Shown(width=80)))).count(STEP) == 1
    assert STEP in plain(report.render(replace(data, restarts=told)))
    assert plain(" ".join(lines)).count(STEP) == 1
    (tmp_path / "incidents.jsonl").touch()
    space = {"namespace": "eu-1/shop"}
    (tmp_path / "findings.jsonl").write_text("".join(f"{json.dumps(row(x) | space)}\n" for x in TWO))
    (tmp_path / "_SUCCESS.json").write_text('{"lacking": ""}')
    assert main(["explain", one.id, "--events", str(tmp_path)]) == 0
    assert plain(capsys.readouterr().out).count(STEP) == 1
    assert main(["plan", TWO[1].id, str(tmp_path)]) == 0
    script = capsys.readouterr().out
    for known in (
        "NAMESPACE=shop", "POD=pod-a", "TASKS=(0_0 0_2)", "STORES=()", "SEEN_AT='2023-11-14 22:13:21.000000 UTC'",
    ):  # fmt: skip
        assert f"\n{known}  #" in script or f"\n{known}\n" in script
    (tmp_path / "_SUCCESS.json").write_text('{"lacking": "1 line is of an unknown contract version"}')
    assert (main(["explain", one.id, "--events", str(tmp_path)]), main(["plan", one.id, str(tmp_path)])) == (
        3,
        3,
    )
    assert "1 line is of an unknown" in capsys.readouterr().err


def test_a_restart_follows_what_comes_first(fleet: list[FleetIncident]) -> None:
    """One step: that of the incident that precedes the other one; of a task without an incident there is none."""
    first = row(found("0_0")) | {
        "id": "c" * 16, "detector": "changelog-truncated", "mechanism": "short-changelog",
        "next_action": "Delete nothing.", "incident_id": "i-0000000000cc", "local_incidents": [],
    }  # fmt: skip
    both = of_fleet([*map(row, TWO), first])
    rows = [
        page_rows.answer(task_id=task, kinds=["damaged"], follow=["stale-eos-checkpoint"]) for task in ("0_0", "0_9")
    ]  # fmt: skip
    assert [x["first_action"] for x in with_steps(rows, both)] == ["Delete nothing.", None]
