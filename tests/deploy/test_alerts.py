"""Alert rules: every detector and rule has one, Prometheus accepts them, each fires and stays quiet."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.contract.events import Level, Severity
from agent.contract.runbooks import NAMES, address_of
from agent.detectors import ACCEPTABLE, BY_ID, DETECTORS
from agent.judging.base import Detector, DetectorMeta
from agent.publish.catalogue import CATALOGUE
from spark_rollup.fleet.meta import RuleMeta
from spark_rollup.registry import NAMING, PROOFS, REFUTING
from spark_rollup.report import metrics as rollup_metrics
from tests.support.every import every
from tools.alerts import files
from tools.alerts.model import DASHBOARDS, RUNBOOKS, Alert, notification
from tools.alerts.of_units import camel

GROUPS = dict(files.groups())
ALERTS = [alert for alerts in GROUPS.values() for alert in alerts]
METAS: list[DetectorMeta | RuleMeta] = [*(x.meta for x in DETECTORS), *NAMING]
OF_DETECTORS = METAS[: len(DETECTORS)]
IDS = [*(f"detector-{x.id}" for x in OF_DETECTORS), *(f"rule-{x.id}" for x in NAMING)]
PAGING_LIMIT = 22
"""So many alerts may wake somebody, out of all; more is a decision. Two of them need `verify`, which proves first."""

SHOWN = {metric.name for metric in CATALOGUE} | {metric.name for metric in rollup_metrics.CATALOGUE}


def tool(name: str) -> str:
    """Find a program of Debian's packages, or skip and say which package it is."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: apt-get install prometheus prometheus-alertmanager")
    return found


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program and give back everything that it said."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_every_detector_and_rule_has_its_file(repository: Path) -> None:
    """One file per detector and rule plus the watchers', recording and the dead man's; no file is left behind."""
    owners = [x.meta.id for x in DETECTORS] + [f"fleet-{x.id}" for x in NAMING]
    others = ["agent-health", "rollup-health", "rollup-absent", "dead-man", "recording"]
    found = {path.name.split(".")[0] for path in (repository / files.DIRECTORY).glob("*.rules.yaml")}
    assert found == {*owners, *others}
    tests = {path.name.split(".")[0] for path in (repository / files.DIRECTORY / "tests").glob("*.yaml")}
    assert tests == found


@every("meta", METAS)
def test_an_alert_says_what_its_unit_says(meta: Any) -> None:
    """Severity, name, series, runbook and next action come from the metadata of the detector or rule."""
    local = meta in OF_DETECTORS
    pressing = [x for x in unit_alerts(meta) if not x.name.endswith("Exposed")]
    if pressing:
        assert pressing[0].severity == meta.severity.value
        assert pressing[0].name == f"Statewarden{'' if local else 'Fleet'}{camel(meta.id)}"
    for alert in pressing:
        assert f'{"detector" if local else "rule"}="{meta.id}"' in alert.expr
        assert f'severity="{alert.severity}"' in alert.expr
        assert alert.runbook == f"{'detectors' if local else 'rules'}/{meta.id}"
        assert meta.title[1:] in alert.summary
        assert "incident_id" in alert.expr
        assert "`statewarden explain <incident> --events SOURCE`" in alert.description


@every("meta", METAS)
def test_what_an_incident_says_now_is_what_the_agent_or_audit_exports(meta: Any) -> None:
    """Sentence and step are joined, never labels; of itself the alert neither says that it is so nor has a step.

    Another finding may name the incident by now, it may be suspected only, and another incident's step may come first.
    """
    asked = (
        "statewarden_incident_text{pod=%q,incident_id=%q}` $labels.pod"
        if meta in OF_DETECTORS
        else "statewarden_rollup_incident_text{incident_id=%q}`"
    )
    for alert in unit_alerts(meta):
        if alert.name.endswith("Exposed"):
            continue
        shown = notification(alert)
        for name in ("summary", "next_step"):
            assert f"printf `{asked} $labels.incident_id | query" in shown[name]
            assert f'label "{name}"' in shown[name]
        assert ", reported as: " in shown["description"]
        assert (" If it is real: " in shown["description"]) is (meta.level is Level.DAMAGE)
        assert not set(alert.labels) & {"summary", "next_step"}
        assert ("suspected: " in alert.summary) == alert.name.endswith("Suspected")
        if meta in OF_DETECTORS:
            assert meta.next_action not in str(shown)
        texts = [case.text for case in alert.cases if case.labels is not None]
        assert () in texts
        assert len({*texts}) == (5 if meta in OF_DETECTORS else 4)


def unit_alerts(meta: Any) -> tuple[Alert, ...]:
    """Give the alerts of a detector or rule."""
    return GROUPS[meta.id if meta in OF_DETECTORS else f"fleet-{meta.id}"]


def test_what_verify_proves_pages(repository: Path) -> None:
    """As a rule of the same severity does; what refutes is no reason to wake anybody, and has no page to read."""
    for meta in PROOFS:
        page, ticket = unit_alerts(meta)
        assert (page.severity, page.for_m, ticket.severity) == ("critical", 0, "warning")
    for meta in REFUTING:
        assert not [name for name in GROUPS if meta.id in name]
        assert f"rules/{meta.id}" not in NAMES


def test_exposures_by_release_or_settings_are_for_reading() -> None:
    """One alert per application and release, repeated weekly, with what lowers the risk and how to accept it."""
    exposed = {x.meta.id: unit_alerts(x.meta)[-1] for x in DETECTORS if x.meta.lowers_risk}
    assert tuple(exposed) == ACCEPTABLE
    for id_, alert in exposed.items():
        assert (alert.severity, alert.labels, alert.name[-7:]) == ("info", {"repeat": "weekly"}, "Exposed")
        assert "(cluster, namespace, application_id, release)" in alert.expr
        assert BY_ID[id_].meta.lowers_risk in alert.description
        assert f"accepts={id_}" in alert.description


def test_the_sidecars_chart_knows_what_can_be_accepted(repository: Path) -> None:
    """A detector whose exposures do not last is refused before any pod starts."""
    schema = json.loads(
        (repository / "helm/statewarden-sidecar/values.schema.json").read_text(encoding="utf-8")
    )
    assert schema["definitions"]["facts"]["properties"]["accepts"]["items"]["enum"] == list(ACCEPTABLE)


def test_the_agents_alert_and_the_fleets_share_their_labels() -> None:
    """By the same labels, those that the routes compare, one inhibits the other: one incident is one page."""
    same = "max by (cluster, namespace, application_id, incident_id, "
    for meta in METAS:
        for alert in unit_alerts(meta):
            if "incident_id" in alert.expr:
                assert alert.expr.startswith(same)
                assert alert.labels == {"reporter": "agent" if meta in OF_DETECTORS else "fleet"}


@every("detector", DETECTORS, ids=lambda x: x.meta.id)
def test_a_detector_says_what_follows_for_the_data(detector: Detector) -> None:
    """Whoever is woken reads it in the alert; a rule may leave it to its level."""
    assert detector.meta.consequence.endswith(".")


def test_names_are_unique() -> None:
    """An alert can be silenced by its name alone."""
    assert [name for name, count in Counter(x.name for x in ALERTS).items() if count > 1] == []
    assert all(re.fullmatch(r"Statewarden[A-Za-z0-9]+", x.name) for x in ALERTS)


def test_few_page() -> None:
    """Only damage, and what becomes damage at once, wakes somebody; the watchers themselves never do."""
    paging = [x.name for x in ALERTS if x.severity == "critical"]
    assert len(paging) <= PAGING_LIMIT
    loudest = [x.severity for x in METAS]
    assert len(paging) == loudest.count(Severity.CRITICAL)
    assert not [
        x
        for group in ("agent-health", "rollup-health", "dead-man")
        for x in GROUPS[group]
        if x.name in paging
    ]


@every("alert", ALERTS, ids=lambda x: x.name)
def test_an_alert_is_fit_for_a_notification(repository: Path, alert: Alert) -> None:
    """What is said without the incident's text is short, each step is a text of its own, links lead somewhere."""
    assert len(alert.summary) <= 110
    shown = notification(alert)
    assert ("next_step" in shown) == (alert.severity != "none")
    assert "Next: " not in shown["description"]
    page, _, anchor = address_of(alert.runbook, ".md").partition("#")
    assert f'<a id="{anchor}"></a>' in (repository / f"docs/{page}").read_text(encoding="utf-8")
    board = json.loads((repository / f"deploy/dashboards/{alert.board}.json").read_text(encoding="utf-8"))
    variables = {x["name"] for x in board["templating"]["list"]}
    assert set(re.findall(r"[?&]var-([a-z]+)=", shown["dashboard_url"])) <= variables
    assert set(re.findall(r"statewarden_\w+", alert.expr)) <= SHOWN


@every("alert", ALERTS, ids=lambda x: x.name)
def test_an_alert_has_cases_on_both_sides(alert: Alert) -> None:
    """At least 3 cases: it fires, not yet, it stays quiet; the dead man's has nothing to be quiet about."""
    assert len(alert.cases) >= 3
    assert len({case.name for case in alert.cases}) == len(alert.cases)
    assert any(case.labels is not None for case in alert.cases)
    assert alert.severity == "none" or sum(case.labels is None for case in alert.cases) >= 2


@pytest.mark.packages
def test_prometheus_accepts_the_rules(repository: Path) -> None:
    """`promtool check rules` reads every file."""
    rules = sorted(str(path) for path in (repository / files.DIRECTORY).glob("*.rules.yaml"))
    checked = run(tool("promtool"), "check", "rules", *rules, cwd=repository)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.packages
def test_alerts_fire_and_stay_quiet(repository: Path) -> None:
    """`promtool test rules`: every case of every alert, wording and labels included."""
    directory = repository / files.DIRECTORY / "tests"
    tests = sorted(path.name for path in directory.glob("*.test.yaml"))
    tested = run(tool("promtool"), "test", "rules", *tests, cwd=directory)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_a_page_keeps_back_no_ticket_about_anything_else(repository: Path) -> None:
    """Nothing is inhibited beyond one incident: a task that ended uncleanly is the last warning."""
    text = (repository / "deploy/alerts/alertmanager.yaml").read_text(encoding="utf-8")
    rules = re.findall(r"target_matchers: \[(.*)\]\n  equal: \[(.*)\]", text)
    assert len(rules) == text.count("source_matchers:")
    assert [targets for targets, equal in rules if "incident_id" not in equal] == []


@pytest.mark.packages
def test_alertmanager_accepts_its_example(repository: Path) -> None:
    """`amtool check-config` reads the routing example."""
    checked = run(tool("amtool"), "check-config", "deploy/alerts/alertmanager.yaml", cwd=repository)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_committed_links_have_one_base_each(repository: Path) -> None:
    """Every address in the rules begins with one of the two placeholders: replacing them is enough."""
    for path in (repository / files.DIRECTORY).glob("*.rules.yaml"):
        text = path.read_text(encoding="utf-8")
        assert text.count("https://") == text.count(f"{RUNBOOKS}/") + text.count(f"{DASHBOARDS}/"), path.name
