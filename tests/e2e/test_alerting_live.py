"""A recorded incident and a benign run on real directories: the one right page goes out, and nothing else.

Real files and locks, real agents, a real Prometheus with the committed rules, a real Alertmanager with the committed
routes. Both runs stand side by side, so that the silence of the one is proved while the other rings.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.contract.audited import gather
from agent.contract.events import Severity
from deploy.demo.agents import Agent
from deploy.demo.materialise import materialise_fleet
from deploy.demo.scenarios import load_scenario
from spark_rollup.report import metrics as rollup_metrics
from spark_rollup.report.page import PageData
from tests.conftest import wait_until
from tests.support.boards import Asked, filled, queries
from tests.support.monitoring import Monitoring, Webhook

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
INCIDENT, BENIGN = "kafka-20685-4.1.2", "benign-restart-alos-4.3.1"
PODS = {"orders-0": INCIDENT, "payments-0": BENIGN}
NOTIFIED_WITHIN_S = 120.0

pytestmark = [pytest.mark.packages, pytest.mark.e2e, pytest.mark.inotify, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Proof:
    """What runs, right after the recordings were replayed and the page went out."""

    monitoring: Monitoring
    webhook: Webhook
    agents: dict[str, Agent]


def rollup_text() -> str:
    """Give what an audit of this fleet would have left, so that the fleet board has something to show."""
    now_us = int(time.time() * 1_000_000)
    found = {"detector": "missing-standby", "severity": "info", "status": "open", "namespace": "shop",
             "application_id": "orders", "task_id": "0_1", "reported_by": "fleet", "id": "0" * 32,
             "opened_at": "2026-11-22T03:00:00.000000Z", "level": "exposure", "confidence": "confirmed",
             "upstream": [], "affected": "no", "summary": "A copy lacks.", "next_action": "Look.",
             "pods": ["orders-0"]}  # fmt: skip
    coverage = {
        "span_seconds": 100.0,
        "unknown_seconds": 1.0,
        "lost_events": 0,
        "missed_criticals": 0,
        "missed_warnings": 0,
    }
    rules = {"missing-standby": Severity.INFO}
    data = PageData(now_us - 5_000_000, "1", gather([found]), [found], [coverage])
    return rollup_metrics.render(rollup_metrics.Facts(data, rules, now_us))


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proof]:
    base = tmp_path_factory.mktemp("alerting")
    with ExitStack() as stack:
        webhook = Webhook({"/metrics": rollup_text()})
        stack.callback(webhook.close)
        agents: dict[str, Agent] = {}
        for pod, name in PODS.items():
            state = base / "state" / pod
            state.mkdir(parents=True)
            agents[pod] = Agent(
                pod, state, base / "agents" / pod, base / "shipped", load_scenario(TRACES / name).settings
            )
            stack.callback(agents[pod].kill)
        targets = {
            "statewarden-agent": [
                {"__address__": agent.url.removeprefix("http://"), "namespace": "shop", "pod": pod}
                for pod, agent in agents.items()
            ],
            "statewarden-rollup": [{"__address__": webhook.address}],
        }
        monitoring = Monitoring(base / "monitoring", targets, webhook)
        stack.callback(monitoring.close)
        for agent in agents.values():
            agent.wait_ready()

        def repeat(pod: str) -> None:
            trace = next(iter(load_scenario(TRACES / PODS[pod]).traces.values()))
            materialise_fleet({pod: (trace, base / "state" / pod)})

        with ThreadPoolExecutor(len(PODS)) as threads:
            list(threads.map(repeat, PODS))
        wait_until(lambda: webhook.got["pages"] and webhook.got["dead-man"], NOTIFIED_WITHIN_S)
        yield Proof(monitoring, webhook, agents)


def test_the_right_page_goes_out(proof: Proof) -> None:
    """The webhook of the pages gets one alert: the bug, the task, the pod, what it means and what to do."""
    (alert,) = {str(x["labels"]): x for x in proof.webhook.got["pages"]}.values()
    scenario = load_scenario(TRACES / INCIDENT)
    (expected, *_) = scenario.expected
    labels = alert["labels"]
    assert (labels["alertname"], labels["severity"]) == ("StatewardenSkippedEosWipe", "critical")
    assert (labels["namespace"], labels["pod"], labels["reporter"]) == ("shop", "orders-0", "agent")
    said = alert["annotations"]
    where = f"shop/orders-0: {scenario.application_id} {expected.task_id}"
    assert said["summary"].startswith(f"{where} (skipped-eos-wipe, suspected): ")
    assert said["description"].startswith(f"Incident {labels['incident_id']}, reported as: ")
    assert "KAFKA-20685" in said["description"]
    assert said["next_step"].startswith("Check it first")
    assert "Otherwise: Stop this instance" in said["next_step"]
    assert said["runbook_url"].endswith("/runbooks/uncommitted-data.html#skipped-eos-wipe")
    assert "var-pod=orders-0" in said["dashboard_url"]
    with urllib.request.urlopen(f"{proof.agents['orders-0'].url}/", timeout=60) as answer:
        assert f'id="{labels["incident_id"]}"' in answer.read().decode()
    served = f"{proof.agents['orders-0'].url}/runbooks/detectors/skipped-eos-wipe"
    with urllib.request.urlopen(served, timeout=60) as answer:
        assert answer.read().decode().startswith("# ")


def test_no_other_alert_fires(proof: Proof) -> None:
    """Beside that page only the dead man's alert fires; the benign run and the agents themselves are silent."""
    firing = {(x["labels"]["alertname"], x["labels"].get("pod")) for x in proof.monitoring.firing()}
    assert firing == {("StatewardenSkippedEosWipe", "orders-0"), ("StatewardenDeadMan", None)}
    assert proof.webhook.got["tickets"] == []
    assert proof.webhook.got["reading"] == []
    assert {x["labels"]["alertname"] for x in proof.webhook.got["dead-man"]} == {"StatewardenDeadMan"}


def test_prometheus_evaluates_every_rule(proof: Proof) -> None:
    """No rule fails on live series (duplicate labels, many-to-many matches)."""
    assert proof.monitoring.unhealthy_rules() == []


@pytest.mark.parametrize("asked", queries(), ids=lambda x: f"{x.board}: {x.panel}")
def test_every_panel_has_data(proof: Proof, asked: Asked) -> None:
    """Each query of each board gives data on live series, with everything selected; what is drawn is no NaN."""
    expr, monitoring = filled(asked.expr), proof.monitoring
    now = monitoring.query(expr)
    assert now, asked
    shown = now if asked.kind in ("stat", "table") else monitoring.query_range(expr, 60)
    values = [value for row in shown for _, value in row.get("values") or [row["value"]]]
    assert values, asked
    assert "NaN" not in values, asked


def test_the_pods_own_page_shows_the_same(proof: Proof) -> None:
    """The agent's page shows the finding with its evidence; that of the benign pod says that nothing is wrong."""
    pages = {}
    for pod, agent in proof.agents.items():
        with urllib.request.urlopen(f"{agent.url}/", timeout=60) as answer:
            pages[pod] = answer.read().decode()
    assert "1 critical incident" in pages["orders-0"]
    assert "skipped-eos-wipe" in pages["orders-0"]
    assert "<h1>Nothing" in pages["payments-0"]
