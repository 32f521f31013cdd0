"""The rollup's metrics: the catalogue is what is written, known series are there as zeros, hostile names do no harm."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from agent.contract.audited import gather
from agent.contract.events import Severity
from spark_rollup.errors import UsageError
from spark_rollup.fleet.meta import RuleMeta
from spark_rollup.registry import PROOFS, severities
from spark_rollup.report import metrics
from tests.spark_rollup.report.page import page_rows
from tests.support.answering import Answer, Request, answering

ROLLUP = "statewarden_rollup"


def finding(**fields: object) -> dict[str, object]:
    """Give one row of the findings table."""
    return page_rows.finding(**{"detector": "missing-standby", "task_id": "0_1"} | fields)


def facts(*findings: dict[str, object], **fields: object) -> metrics.Facts:
    """Give the facts of a run over two pods, one of them half watched."""
    known = {"missed_criticals": 0, "missed_warnings": 0}
    coverage = [
        {"span_seconds": 100.0, "unknown_seconds": 50.0, "lost_events": 3, "pod": "pod-a", **known},
        {"span_seconds": 300.0, "unknown_seconds": 0.0, "lost_events": 0, "pod": "pod-b", **known},
    ]
    rules = {"missing-standby": Severity.CRITICAL, "unaudited": Severity.WARNING}
    given = {"coverage": coverage, "quarantine": {"not-json": 4}, "incidents": [], **fields}
    chosen = cast("Mapping[str, Severity]", given.pop("rules", rules))
    data = page_rows.page(findings=findings, as_of_us=1_700_000_000_000_000, **given)
    return metrics.Facts(data, chosen, 1_700_000_060_000_000)


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Parse a text into samples."""
    return {(s.name, frozenset(s.labels.items())): s.value for family in parse(text) for s in family.samples}


def labels_of(family: str, given: metrics.Facts) -> list[dict[str, str]]:
    """List the labels of a family's series."""
    return [dict(pairs) for name, pairs in samples(metrics.render(given)) if name == f"{ROLLUP}_{family}"]


def value(name: str, given: metrics.Facts, **labels: str) -> float | None:
    """Give the value of one series."""
    return samples(metrics.render(given)).get((f"{ROLLUP}_{name}", frozenset(labels.items())))


def test_catalogue_equals_the_text() -> None:
    """Every family of the catalogue is announced, in its order, also where nothing was found."""
    announced = [x.split()[2] for x in metrics.render(facts()).splitlines() if x.startswith("# TYPE ")]
    assert announced == [metric.name for metric in metrics.CATALOGUE]


def test_every_rule_has_its_zeros() -> None:
    """An alert can see that nothing is open: each rule has a series for every severity that it can give."""
    assert {(x["rule"], x["severity"]) for x in labels_of("findings_open", facts())} == {
        ("missing-standby", "info"), ("missing-standby", "warning"), ("missing-standby", "critical"),
        ("unaudited", "info"), ("unaudited", "warning"),
    }  # fmt: skip
    assert [value("incidents", facts(), severity=x) for x in ("info", "warning", "critical")] == [0, 0, 0]


def whole(number: int = 1, **fields: object) -> dict[str, object]:
    """Give a row with everything that incidents are made of."""
    return finding(
        id=f"{number:032x}", level="exposure", confidence="confirmed", opened_at="2026-11-22T03:00:00.000000Z",
        upstream=[], affected="no", summary="A copy lacks.", next_action="Look.", pods=["orders-0", "orders-1"],
        namespace="eu-1/shop", pod=None, mechanism="missing-standby", lineage=[str(number)], **fields,
    )  # fmt: skip


def test_open_incidents_are_listed_with_their_ids() -> None:
    """Cluster and namespace apart: an alert carries the same labels as the agents'; resolved ones are gone."""
    rows = [whole(), whole(2, status="resolved", resolved_at="2026-11-22T04:00:00.000000Z")]
    given = facts(*rows, incidents=gather(rows))
    (labels,) = labels_of("incident_info", given)
    assert labels == {
        "audited_cluster": "eu-1", "audited_namespace": "shop", "application_id": "orders",
        "incident_id": "i-000000000000", "tasks": "0_1", "pods": "orders-0, orders-1", "rule": "missing-standby",
        "severity": "critical", "confidence": "confirmed", "reported_by": "fleet", "named_by": "",
    }  # fmt: skip
    assert value("incidents", given, severity="critical") == 1
    asked = facts(incidents=gather([whole(detector="undecided", severity="warning")]))
    assert [value("incidents", asked, severity=x) for x in ("warning", "undecided")] == [0, 1]
    assert labels_of("incident_text", given) == [{
        "application_id": "orders", "incident_id": "i-000000000000", "next_step": "Look.",
        "summary": "orders 0_1 on orders-0, orders-1 (missing-standby, confirmed): A copy lacks.",
    }]  # fmt: skip


def test_an_incident_keeps_its_alert_when_another_rule_names_it() -> None:
    """Two rules about the same: the later one is surer and names it, and the alert stays that of the first."""

    def alert(
        *rows: dict[str, object], rules: tuple[str, ...] = ("cloned-process", "cloned-volume")
    ) -> list[str]:
        given = facts(*rows, incidents=gather(rows), rules=dict.fromkeys(rules, Severity.CRITICAL))
        found = labels_of("incident_info", given)
        return [x["rule"] + "/" + x["severity"] + "/" + x.get("named_by", "") for x in found]

    both = {"lineage": ["same"], "mechanism": "shared-state"}
    first = {**whole(), **both, "detector": "cloned-volume", "confidence": "suspected"}
    later = whole(2 << 80) | both | {"detector": "cloned-process", "opened_at": "2026-11-22T04:00:00.000000Z"}
    assert alert(first) == ["cloned-volume/critical/"]
    assert alert(first, later) == ["cloned-volume/critical/cloned-process"]
    # what becomes critical pages by its own name, a ticket is not kept for damage, and what has no alert names none
    assert alert({**first, "severity": "warning"}, later) == ["cloned-process/critical/"]
    tickets = [{**x, "severity": "warning"} for x in (first, {**later, "level": "damage"})]
    assert alert(*tickets) == ["cloned-process/warning/"]
    assert alert(first, later, rules=("cloned-process",)) == ["cloned-process/critical/"]


@pytest.mark.parametrize("meta", PROOFS, ids=lambda x: x.id)
def test_what_verify_proves_names_its_incident(meta: RuleMeta) -> None:
    """Alone it is an incident with its own alert; where a rule was first, that alert stays, and says so."""
    proof = {**whole(2 << 80), "detector": meta.id, "opened_at": "2026-11-22T04:00:00.000000Z"}
    first = {**whole(), "detector": "diverged-replica"}
    same = {"mechanism": "unequal-copies", "lineage": ["orders/0_1"], "level": "damage"}

    def told(*rows: dict[str, object]) -> tuple[str, ...]:
        found = [{**row, **same} for row in rows]
        given = facts(*found, incidents=gather(found), rules=severities(verified=True))
        (labels,) = labels_of("incident_info", given)
        return tuple(labels[x] for x in ("rule", "severity", "confidence", "reported_by", "named_by"))

    assert told(proof) == (meta.id, "critical", "confirmed", "fleet", "")
    assert told({**first, "confidence": "suspected"}, proof) == (
        "diverged-replica", "critical", "confirmed", "fleet", meta.id,
    )  # fmt: skip
    # a ticket: the proof was first, and a rule is surer by now
    unsure = {**proof, "severity": "warning", "confidence": "suspected"}
    later = {**first, "severity": "warning", "opened_at": "2026-11-22T05:00:00.000000Z"}
    assert told(unsure, later) == (meta.id, "warning", "confirmed", "fleet", "diverged-replica")
    assert told({**first, "severity": "warning"}, proof) == (meta.id, "critical", "confirmed", "fleet", "")


def test_without_verify_there_are_no_zeros_of_what_it_proves() -> None:
    """A zero would say that no copy differs, where nobody has compared any."""
    for verified in (False, True):
        shown = {x["rule"] for x in labels_of("findings_open", facts(rules=severities(verified=verified)))}
        assert {x.id for x in PROOFS} & shown == ({x.id for x in PROOFS} if verified else set())
        assert "diverged-replica" in shown


def test_listed_incidents_are_bounded() -> None:
    """What is left out is counted in one series."""
    rows = [
        {**whole(number << 80), "task_id": f"0_{number}"} for number in range(1, metrics.INCIDENTS_LISTED + 4)
    ]
    given = facts(*rows, incidents=gather(rows))
    assert len(labels_of("incident_info", given)) == metrics.INCIDENTS_LISTED
    assert value("incidents_unlisted", given) == 3


def test_a_fleet_of_agents_incidents_keeps_no_rules_out() -> None:
    """200 pods on a release that exposes them are 200 older incidents, whose alerts are the agents'."""
    rows = [
        {
            **whole(number << 80), "task_id": f"0_{number}", "severity": "warning", "reported_by": "agent",
            "opened_at": "2026-11-20T03:00:00.000000Z",
        }
        for number in range(1, 201)
    ]  # fmt: skip
    rows.append({**whole(201 << 80), "task_id": "0_201", "severity": "warning"})
    listed = labels_of("incident_info", facts(*rows, incidents=gather(rows)))
    assert len(listed) == metrics.INCIDENTS_LISTED
    assert [x["tasks"] for x in listed if x["reported_by"] == "fleet"] == ["0_201"]


def test_open_findings_are_counted_by_task_and_rule() -> None:
    """Two open findings of one task are one series of two; a resolved one is none."""
    given = facts(finding(), finding(), finding(status="resolved"), finding(task_id=None))
    by_rule = {"rule": "missing-standby", "severity": "critical", "reported_by": "fleet"}
    task = {"audited_namespace": "shop", "application_id": "orders", "task_id": "0_1"}
    assert value("task_findings", given, **task, **by_rule) == 2
    assert value("findings_open", given, **by_rule) == 3


def test_what_agents_say_alone_has_its_own_series() -> None:
    """A rule and a detector may share a name; the label tells them apart."""
    rows = (finding(), finding(reported_by="agent"), finding(detector="torn-store", reported_by="agent"))
    found = samples(metrics.render(facts(*rows)))
    open_ = {
        (labels["rule"], labels["reported_by"]): value
        for name, labels, value in ((name, dict(pairs), value) for (name, pairs), value in found.items())
        if name == "statewarden_rollup_findings_open" and value
    }
    assert open_ == {
        ("missing-standby", "fleet"): 1, ("missing-standby", "agent"): 1, ("torn-store", "agent"): 1,
    }  # fmt: skip
    assert sum(name == "statewarden_rollup_task_findings" for name, _ in found) == 3


def test_what_agents_count_and_is_not_there_is_counted() -> None:
    """Of all pods together; zero is there, too, or an alert would not know that all is known."""
    name = "statewarden_rollup_missed_findings"
    row = {"span_seconds": 1.0, "unknown_seconds": 0.0, "lost_events": 0, "pod": "pod-a"}
    some = [{**row, "missed_criticals": 1, "missed_warnings": n} for n in (0, 2)]
    counted = [value("missed_findings", facts(coverage=some), severity=x) for x in ("critical", "warning")]
    assert counted == [2.0, 2.0]
    assert f'{name}{{severity="critical"}} 0.0' in metrics.render(facts())


def test_coverage_is_weighed_by_time() -> None:
    """Of 400 s, 50 were not watched; without any time there is no share to tell."""
    assert value("watched_ratio", facts()) == pytest.approx(0.875)
    assert (value("lost_events", facts()), value("pods", facts())) == (3, 2)
    assert value("watched_ratio", facts(coverage=())) is None


def test_series_by_task_are_bounded_and_the_worst_stay() -> None:
    """A fleet that is on fire does not bring Prometheus down."""
    rows = [finding(task_id=f"0_{n}", severity="warning") for n in range(metrics.ROWS_LISTED + 9)]
    found = labels_of("task_findings", facts(*rows, finding()))
    assert len(found) == metrics.ROWS_LISTED
    assert sum(x["severity"] == "critical" for x in found) == 1


def test_hostile_names_are_escaped() -> None:
    """Quotes, line ends and broken UTF-8 in a name stay inside their label."""
    ours = labels_of("task_findings", facts(finding(application_id='a"} 1\nb\\\udcff')))
    assert [x["application_id"] for x in ours] == ['a"} 1\nb\\\\udcff']


def test_the_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """The text is in place under its name, and nothing half-written beside it."""
    for _ in range(2):
        metrics.write(facts(), tmp_path / metrics.FILE)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.prom"]
    with pytest.raises(UsageError, match=r"metrics\.prom cannot be written"):
        metrics.write(facts(), tmp_path / "missing" / metrics.FILE)


def test_a_pushgateway_is_given_the_same_text() -> None:
    """One PUT replaces the job's group; a gateway that is not there is told in one line."""
    got: list[tuple[str, str, bytes]] = []

    def gateway(request: Request) -> Answer:
        got.append((request.method, request.path, request.body))
        return 200, {}, b""

    with answering(gateway) as address:
        metrics.push(facts(), f"{address}/")
    assert got == [("PUT", "/metrics/job/statewarden-rollup", metrics.render(facts()).encode())]
    with pytest.raises(UsageError, match="refused the metrics"):
        metrics.push(facts(), address)
    with pytest.raises(UsageError, match="must be an http"):
        metrics.push(facts(), "file:///etc/passwd")


@pytest.mark.packages
def test_promtool_finds_nothing() -> None:
    """Prometheus' own linter has no complaint about name, type or help."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install prometheus")
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=metrics.render(facts(finding())), capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
