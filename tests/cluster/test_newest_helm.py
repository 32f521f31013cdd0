"""The charts under Helm 3 and 4 as they are today: scenarios, schemas of custom resources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.charts import (
    APPLICATION,
    CONSUMER,
    LIBRARY,
    VERSIONS,
    Helm,
    mistakes,
    objects,
    program,
    scenarios,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def custom(crds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Turn the generated definitions into strict schemas."""
    target = tmp_path_factory.mktemp("schemas")
    for path in crds.glob("*.yaml"):
        (definition,) = objects(path.read_text("utf-8"))
        for version in definition["spec"]["versions"]:
            name = f"{definition['spec']['names']['kind'].lower()}-monitoring-{version['name']}.json"
            (target / name).write_text(json.dumps(strict(version["schema"]["openAPIV3Schema"])))
    return target


def strict(node: Any) -> Any:
    """Forbid fields that a definition does not name; the server would drop them without a word."""
    if isinstance(node, list):
        return [strict(x) for x in node]
    if not isinstance(node, dict):
        return node
    inner = {key: strict(value) for key, value in node.items()}
    if isinstance(inner.get("properties"), dict) and node.get("type") == "object":
        inner.setdefault("additionalProperties", False)
        if {"apiVersion", "kind", "metadata"} <= set(inner["properties"]):
            inner["properties"]["metadata"] = {"type": "object"}
    return inner


def test_scenarios_are_valid_and_lint_clean(chart: Helm, custom: Path) -> None:
    for path in scenarios(APPLICATION):
        done = chart.lint(path)
        assert done.returncode == 0, done.stdout
    text = "\n---\n".join(chart.text(path) for path in scenarios(APPLICATION))
    for version in VERSIONS:
        assert mistakes(text, version, crds=custom) == []


def test_sidecars_are_valid(sidecar: Helm) -> None:
    text = "\n---\n".join(sidecar.text(path) for path in scenarios(CONSUMER))
    for version in VERSIONS:
        assert mistakes(text, version) == []
    assert Helm(sidecar.binary, LIBRARY).lint().returncode == 0


def test_both_helms_and_the_oldest_make_the_same(chart: Helm) -> None:
    oldest = Helm(program("helm"), APPLICATION)
    for path in scenarios(APPLICATION):
        assert chart.objects(path) == oldest.objects(path)


def test_wrong_custom_resources_are_found(chart: Helm, custom: Path) -> None:
    (everything,) = (x for x in scenarios(APPLICATION) if x.name.startswith("everything"))
    text = chart.text(everything)
    wrong = text.replace("scrapeTimeout:", "scrapeTimeOut:").replace("keep_firing_for:", "keepFiringFor:")
    kinds = {x["kind"] for x in mistakes(wrong, VERSIONS[-1], crds=custom)}
    assert kinds == {"PodMonitor", "PrometheusRule"}
