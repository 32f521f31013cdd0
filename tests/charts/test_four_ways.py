"""The sidecar by chart, by hand, by component and by admission policy: four texts, one container."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.charts import ROOT, Helm, Manifest, essence, kind_of, objects, run, sidecar_of

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


def built(place: Path) -> list[Manifest]:
    """Run kustomize, which kubectl has built in."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl")
    done = run(kubectl, "kustomize", place)
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)


def test_one_component_serves_all_namespaces(by_chart: Manifest, tmp_path: Path) -> None:
    """Each overlay has the chart's sidecar before all else, with where it ships and the facts that labels say."""
    place = tmp_path / "kustomize"
    shutil.copytree(DEPLOY / "kustomize", place)
    folders = {path.parent.name for path in (place / "namespaces").glob("*/kustomization.yaml")}
    found = built(place / "namespaces")
    assert [x["metadata"]["namespace"] for x in found] == sorted(folders)
    for workload in found:
        first, *others = workload["spec"]["template"]["spec"]["initContainers"]
        assert [x["name"] for x in others] == ["migrate"]
        assert first["args"] == [
            "run",
            "--set=processing_guarantee=exactly_once_v2",
            "--set=num_standby_replicas=1",
        ]
        added = {
            x["name"]: x
            for x in first["env"]
            if x["name"] in ("STATEWARDEN_SHIP_TO", "STATEWARDEN_STREAMS_VERSION")
        }
        assert added["STATEWARDEN_SHIP_TO"]["value"] == "s3://streams-audit/statewarden/events"
        label = re.fullmatch(
            r"metadata\.labels\['(.+)'\]",
            added["STATEWARDEN_STREAMS_VERSION"]["valueFrom"]["fieldRef"]["fieldPath"],
        )
        assert label is not None
        assert workload["spec"]["template"]["metadata"]["labels"][label[1]] == "4.1.2"
        plain = first | {"env": [x for x in first["env"] if x["name"] not in added]}
        assert essence(plain) == essence(by_chart | {"image": f"{by_chart['image']}-sinks"})


@pytest.mark.parametrize(
    ("without", "args"),
    [
        ('    statewarden.io/audited: "true"\n', None),
        ("    statewarden.io/guarantee: exactly_once_v2\n", ["run", "--set=num_standby_replicas=1"]),
        ('    statewarden.io/standbys: "1"\n', ["run", "--set=processing_guarantee=exactly_once_v2"]),
    ],
)
def test_a_label_that_is_missing_is_no_fact(tmp_path: Path, without: str, args: list[str] | None) -> None:
    """And without the first one a workload is left as it is."""
    place = tmp_path / "kustomize"
    shutil.copytree(DEPLOY / "kustomize", place)
    application = place / "application" / "application.yaml"
    text = application.read_text("utf-8")
    assert text.count(without) == 1
    application.write_text(text.replace(without, ""), encoding="utf-8")
    (workload,) = built(place / "namespaces" / "shop")
    names = [x["name"] for x in workload["spec"]["template"]["spec"]["initContainers"]]
    assert names == (["migrate"] if args is None else ["statewarden", "migrate"])
    if args is not None:
        assert workload["spec"]["template"]["spec"]["initContainers"][0]["args"] == args


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
