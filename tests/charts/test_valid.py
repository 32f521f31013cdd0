"""Every scenario of both charts passes the linter, and the strict schemas of every Kubernetes release promised."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.charts import (
    APPLICATION,
    CONSUMER,
    LIBRARY,
    ROOT,
    VERSIONS,
    Helm,
    mistakes,
    objects,
    scenarios,
)

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]

CUSTOM = ("PodMonitor", "PrometheusRule")
"""Their schemas are generated in `tests/cluster`, where they are checked too."""


@pytest.fixture(scope="module")
def rendered(chart: Helm, sidecar: Helm) -> str:
    """Everything that all scenarios make."""
    charts = [(chart, APPLICATION), (sidecar, CONSUMER)]
    return "\n---\n".join(helm.text(path) for helm, source in charts for path in scenarios(source))


@pytest.fixture(scope="module")
def built_in(rendered: str) -> str:
    """What of it has a schema here, without the long ones that have none."""
    documents = re.split(r"^---$", rendered, flags=re.MULTILINE)
    return "---".join(x for x in documents if not any(f"\nkind: {kind}\n" in x for kind in CUSTOM))


def test_linter_has_no_word_to_say(chart: Helm, sidecar: Helm) -> None:
    for helm, source in ((chart, APPLICATION), (sidecar, CONSUMER)):
        for path in scenarios(source):
            done = helm.lint(path)
            assert done.returncode == 0, done.stdout
            assert "[WARNING]" not in done.stdout
            assert "[ERROR]" not in done.stdout
    assert Helm(chart.binary, LIBRARY).lint().returncode == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_strict_schema_of_each_release(built_in: str, version: str) -> None:
    assert mistakes(built_in, version) == []


def test_scenarios_make_every_kind(rendered: str) -> None:
    kinds = {x["kind"] for x in objects(rendered)}
    assert kinds == {
        "ConfigMap",
        "CronJob",
        "Deployment",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Pod",
        "PodMonitor",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
        "StatefulSet",
    }


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("readOnlyRootFilesystem:", "readonlyRootFilesystem:", "readonlyRootFilesystem"),
        ("kind: Service\n", "kind: Service\nkind: Service\n", "kind twice"),
        ("kind: Service\n", "kind: Servant\n", "no schema"),
    ],
)
def test_what_is_wrong_is_found(built_in: str, right: str, wrong: str, said: str) -> None:
    assert right in built_in
    assert any(said in x["msg"] for x in mistakes(built_in.replace(right, wrong), VERSIONS[-1]))


@pytest.mark.parametrize("path", sorted((ROOT / "deploy" / "manifests").glob("*.yaml")), ids=lambda x: x.stem)
def test_plain_manifests_are_valid(path: Path) -> None:
    for version in (VERSIONS[0], VERSIONS[-1]):
        assert mistakes(path.read_text("utf-8"), version, skip=("ScheduledSparkApplication",)) == []


def test_schemas_describe_every_value(chart: Helm) -> None:
    for source in (APPLICATION, LIBRARY):
        schema = json.loads((source / "values.schema.json").read_text("utf-8"))
        (values,) = objects((source / "values.yaml").read_text("utf-8"))
        assert keys(values) == described(schema) - {"global"}
        assert closed(schema)


def keys(values: object, place: str = "") -> set[str]:
    """List dotted names of all values; a map that is empty or of free keys is one value."""
    if not isinstance(values, dict) or not values or place.endswith((".labels", ".annotations")):
        return {place}
    return set().union(*(keys(value, f"{place}.{key}" if place else key) for key, value in values.items()))


def described(schema: dict, place: str = "") -> set[str]:
    """List dotted names of all properties of a schema."""
    inner = schema.get("properties")
    if not inner or place == "global":
        return {place}
    return set().union(*(described(x, f"{place}.{key}" if place else key) for key, x in inner.items()))


def closed(schema: dict) -> bool:
    """Tell whether every map with known keys refuses others."""
    inner = schema.get("properties")
    if inner is None:
        return True
    return schema.get("additionalProperties") is False and all(closed(x) for x in inner.values())
