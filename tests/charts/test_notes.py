"""What both charts say after an installation: next steps that work, and what is not as good as it could be."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.charts import APPLICATION, VERSIONS, Helm, kind_of, mistakes, scenarios
from tests.support.charts import sidecar_values as own

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]

SHOWN = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data:
  notes: |
    {{- %s | nindent 4 }}
"""
"""A template that makes an object of the notes: `helm template` leaves them out."""


@pytest.fixture(scope="module")
def audit(chart: Helm, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Give the application chart with its notes as an object."""
    copy = tmp_path_factory.mktemp("notes") / APPLICATION.name
    shutil.copytree(APPLICATION, copy)
    shutil.move(copy / "templates" / "NOTES.txt", copy / "notes.txt")
    (copy / "templates" / "notes.yaml").write_text(SHOWN % 'tpl (.Files.Get "notes.txt") .')
    return Helm(chart.binary, copy)


@pytest.fixture(scope="module")
def consumer(sidecar: Helm, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Give somebody else's chart with the sidecar's notes as an object."""
    copy = tmp_path_factory.mktemp("notes") / "consumer"
    shutil.copytree(sidecar.chart, copy)
    call = '(dict "context" . "workload" (include "consumer.workload" .))'
    (copy / "templates" / "notes.yaml").write_text(SHOWN % f'include "statewarden-sidecar.notes" {call}')
    return Helm(sidecar.binary, copy)


def notes(helm: Helm, *values: Path, **sets: Any) -> str:
    text: str = kind_of(helm.objects(*values, **sets), "ConfigMap", "notes")["data"]["notes"]
    return text


def test_report_is_fetched_by_a_pod_that_may_run_and_mounts_the_results(audit: Helm) -> None:
    (values,) = (x for x in scenarios(APPLICATION) if x.name.startswith("own-object-store"))
    text = notes(audit, values)
    found = re.search(r"run audit-report --image=(\S+) --overrides='(.*)'$", text, re.MULTILINE)
    assert found
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "audit-report"}, **json.loads(found[2])}
    for version in (VERSIONS[0], VERSIONS[-1]):
        assert mistakes(json.dumps(pod), version) == []
    (container,) = pod["spec"]["containers"]
    (volume,) = pod["spec"]["volumes"]
    assert container["image"] == found[1]
    assert volume["persistentVolumeClaim"] == {"claimName": "statewarden-results"}
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert "cat /results/audit/report.html > report.html" in text


def test_block_for_the_sidecars_is_the_audits_own(audit: Helm) -> None:
    (values,) = (x for x in scenarios(APPLICATION) if x.name.startswith("object-store"))
    assert 'objectStore: {"bucket":"streams-audit","prefix":"statewarden"}' in notes(audit, values)


FACTS = {
    "processing_guarantee": "exactly_once_v2",
    "kafka_streams_version": "4.1.2",
    "num_standby_replicas": 0,
}


def test_nothing_is_missing_where_all_is_given(consumer: Helm) -> None:
    given = {"facts": FACTS, "objectStore__bucket": "streams-audit", "image__digest": f"sha256:{'0' * 64}"}
    text = notes(consumer, **own(**given))
    assert "Warnings" not in text
    assert "kubectl --namespace audits port-forward orders-0 9464" in text


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, "processing_guarantee, kafka_streams_version, num_standby_replicas"),
        ({"facts": {"num_standby_replicas": 0}}, "processing_guarantee, kafka_streams_version"),
        ({"applications": {"orders": FACTS}}, ""),
        ({"agent__propertiesFrom__configMap": "orders-streams"}, "kafka_streams_version"),
        (
            {"agent__streamsVersionFrom__label": "example.com/streams"},
            "processing_guarantee, num_standby_replicas",
        ),
    ],
)
def test_facts_that_nothing_gives_are_named(consumer: Helm, given: dict[str, Any], missing: str) -> None:
    text = notes(consumer, **own(**given))
    assert re.findall(r"Not given: (.*?) \(", text) == ([missing] if missing else [])


def test_thirty_seconds_to_stop_are_pointed_out(consumer: Helm) -> None:
    assert "is not set" in notes(consumer, terminationGracePeriodSeconds=None)
    assert "is not set" not in notes(consumer)


def test_nothing_is_said_where_the_sidecar_is_off(consumer: Helm) -> None:
    assert notes(consumer, **own(enabled=False)).strip() == ""
