"""`deploy/example` with the values of `docs/kubernetes.md`, from packaged charts, as a stranger installs them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.charts import (
    APPLICATION,
    LIBRARY,
    ROOT,
    VERSIONS,
    Helm,
    kind_of,
    mistakes,
    run,
    scenarios,
)

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]

EXAMPLE = ROOT / "deploy" / "example"


@pytest.fixture(scope="module")
def packaged(chart: Helm, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Helm]:
    """Give both charts of the first hour: the audit as a package, the application with the packaged library."""
    work = tmp_path_factory.mktemp("packaged")
    done = run(chart.binary, "package", APPLICATION, LIBRARY, "--destination", work)
    assert done.returncode == 0, done.stderr
    orders = work / "orders"
    shutil.copytree(EXAMPLE / "orders", orders, ignore=shutil.ignore_patterns("charts"))
    (orders / "charts").mkdir()
    (library,) = work.glob("statewarden-sidecar-*.tgz")
    shutil.copy(library, orders / "charts")
    (audit,) = work.glob("statewarden-[0-9]*.tgz")
    return {"orders.yaml": Helm(chart.binary, orders), "audit.yaml": Helm(chart.binary, audit)}


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Save the page's values as it says."""
    page = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
    folder = tmp_path_factory.mktemp("values")
    found = re.findall(r"`(\w+\.yaml)`:\n\n```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for name, text in found:
        (folder / name).write_text(text.replace("REGISTRY", "registry.example"))
    return {name: folder / name for name, _ in found}


def test_packages_render_valid_objects(packaged: dict[str, Helm], values: dict[str, Path]) -> None:
    assert set(values) == set(packaged)
    for name, helm in packaged.items():
        assert helm.lint(values[name]).returncode == 0
        text = helm.text(values[name])
        for version in (VERSIONS[0], VERSIONS[-1]):
            assert mistakes(text, version) == []


def test_application_and_sidecar_agree(packaged: dict[str, Helm], values: dict[str, Path]) -> None:
    found = packaged["orders.yaml"].objects(values["orders.yaml"])
    pod = kind_of(found, "StatefulSet")["spec"]["template"]["spec"]
    properties = kind_of(found, "ConfigMap")["data"]["streams.properties"]
    agent, application = pod["initContainers"][0], pod["containers"][0]
    environment = {x["name"]: x.get("value") for x in agent["env"]}
    settings = dict(line.split("=", 1) for line in properties.splitlines() if not line.startswith("#"))
    assert environment["STATEWARDEN_STATE_DIR"] == settings["state.dir"]
    assert settings["state.dir"] in {x["mountPath"] for x in application["volumeMounts"]}
    (mounted,) = (x for x in pod["volumes"] if x["name"] == "statewarden-properties")
    assert mounted["configMap"]["name"] == kind_of(found, "ConfigMap")["metadata"]["name"]
    assert agent["image"].startswith("registry.example/statewarden-agent:")
    assert agent["image"].endswith("-sinks")
    role = kind_of(found, "ServiceAccount")["metadata"]["annotations"]["eks.amazonaws.com/role-arn"]
    assert role.startswith("arn:aws:iam::")
    assert pod["serviceAccountName"] == kind_of(found, "ServiceAccount")["metadata"]["name"]


def test_monitoring_turns_on_all_that_prometheus_and_grafana_need(chart: Helm) -> None:
    (base,) = (x for x in scenarios(APPLICATION) if x.name.startswith("object-store"))
    found = chart.objects(base, EXAMPLE / "monitoring.yaml")
    kinds = {x["kind"] for x in found}
    assert {"PodMonitor", "PrometheusRule", "ConfigMap", "Deployment"} <= kinds
    rule = kind_of(found, "PrometheusRule")
    assert "statewarden-rollup-absent" in {group["name"] for group in rule["spec"]["groups"]}
