"""One control plane for all cluster tests; namespaces keep them apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.charts import APPLICATION, ROOT, Helm, consumer, program, run
from tests.support.control_plane import Cluster, control_plane

HELMS = ("helm3", "helm4")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, crds: Path) -> Iterator[Cluster]:
    """Run a control plane that knows PodMonitor and PrometheusRule."""
    with control_plane(tmp_path_factory.mktemp("cluster")) as running:
        running.do("create", *(f"--filename={path}" for path in sorted(crds.glob("*.yaml"))))
        running.do("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        yield running


@pytest.fixture(scope="session")
def crds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate the definitions of PodMonitor and PrometheusRule from the operator's Go types."""
    target = tmp_path_factory.mktemp("crds")
    done = run(
        "env", "-C", ROOT / "tests" / "cluster" / "crd", program("controller-gen"), "crd:crdVersions=v1",
        "paths=github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1",
        f"output:crd:dir={target}", env={"GOFLAGS": "-mod=mod"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for path in target.glob("*.yaml"):
        if path.stem.partition("_")[2] not in {"podmonitors", "prometheusrules"}:
            path.unlink()
    return target


@pytest.fixture(scope="session", params=HELMS)
def chart(request: pytest.FixtureRequest) -> Helm:
    """Give the application chart under each new release of Helm."""
    return Helm(program(request.param), APPLICATION)


@pytest.fixture(scope="session", params=HELMS)
def sidecar(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Give somebody else's chart that includes the library chart."""
    return Helm(program(request.param), consumer(tmp_path_factory.mktemp("charts")))
