"""The sidecar by chart, by hand, by component and by admission policy: four texts, one container."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.charts import ROOT, Helm, Manifest, essence, kind_of, objects, sidecar_of

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]

DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def by_chart(sidecar: Helm) -> Manifest:
    """The sidecar as the library chart makes it of its defaults."""
    return sidecar_of(kind_of(sidecar.objects(), "StatefulSet"))


def read(path: Path) -> Manifest:
    return kind_of(objects(path.read_text("utf-8")), "StatefulSet")


@pytest.mark.parametrize("path", ["manifests/streams-application.yaml", "kustomize/sidecar/statefulset.yaml"])
def test_written_by_hand(by_chart: Manifest, path: str) -> None:
    assert essence(sidecar_of(read(DEPLOY / path))) == essence(by_chart)


def test_admission_policy_names_the_same_settings(by_chart: Manifest) -> None:
    text = (DEPLOY / "admission" / "statewarden-sidecar.yaml").read_text("utf-8")
    pairs = dict(re.findall(r"\['([A-Z_]+)', '([^']*)'\]", text))
    written = {x["name"].removeprefix("STATEWARDEN_"): x for x in by_chart["env"]}
    fixed = {name: x["value"] for name, x in written.items() if "value" in x and name != "STATE_DIR"}
    fields = {
        name: x["valueFrom"]["fieldRef"]["fieldPath"] for name, x in written.items() if "valueFrom" in x
    }
    assert pairs == fixed | fields
    assert f"image: '{by_chart['image']}'" in text


def test_demo_keeps_its_state_where_the_sidecar_reads() -> None:
    found = objects((DEPLOY / "manifests" / "streams-application.yaml").read_text("utf-8"))
    pod = kind_of(found, "StatefulSet")["spec"]["template"]["spec"]
    properties = kind_of(found, "ConfigMap")["data"]["streams.properties"]
    settings = dict(line.split("=", 1) for line in properties.splitlines() if not line.startswith("#"))
    agent, application = pod["initContainers"][0], pod["containers"][0]
    assert {"name": "STATEWARDEN_STATE_DIR", "value": settings["state.dir"]} in agent["env"]
    assert "--set=processing_guarantee=" + settings["processing.guarantee"] in agent["args"]
    assert "--set=num_standby_replicas=" + settings["num.standby.replicas"] in agent["args"]
    assert "--set=kafka_streams_version=" + application["image"].partition(":")[2] in agent["args"]
    assert agent["securityContext"]["runAsGroup"] == pod["securityContext"]["runAsGroup"]
    assert agent["securityContext"]["runAsUser"] != pod["securityContext"]["runAsUser"]
