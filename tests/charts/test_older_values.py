"""Values files of older releases: accepted, or refused by the name of a value that is gone, or with what to set."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.charts import Helm, objects

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]

CHARTS = ("statewarden", "statewarden-sidecar")


def parsed(path: Path) -> dict[str, Any]:
    """Read YAML."""
    (found,) = objects(path.read_text("utf-8"))
    return found


def gone(schema: dict[str, Any], values: dict[str, Any]) -> set[str]:
    """List the values that are no more: those that the schema refuses by name, and those it leaves to the templates.

    What the templates say of the latter is in `test_refused.py`.
    """
    found = {
        f"{section}.{name}"
        for section, rule in schema["properties"].items()
        for pattern in rule.get("patternProperties", {})
        for name in values.get(section) or ()
        if re.search(pattern, name) and name not in rule["properties"]
    }
    for error in jsonschema.Draft7Validator(schema).iter_errors(values):
        assert error.validator == "additionalProperties", error.message
        for name in set(error.instance) - set(error.schema["properties"]):
            assert f"'{name}'" in error.message
            found.add(".".join([*map(str, error.absolute_path), name]))
    return found


@pytest.mark.parametrize("chart", CHARTS)
def test_each_value_is_accepted_or_has_a_successor(chart: str, repository: Path) -> None:
    """All values of then, with their defaults; what is refused is on the page, and its successor is in the chart."""
    folder = repository / "helm" / chart
    schema = json.loads((folder / "values.schema.json").read_text("utf-8"))
    page = (repository / "docs" / "compatibility.md").read_text("utf-8")
    rows = dict(re.findall(rf"^\| `values {chart} (.*?)` \| `(.*?)`", page, re.MULTILINE))
    kept = sorted(repository.glob(f"tests/data/upgrade/*/{chart}.values.yaml"))
    assert kept
    assert {name for path in kept for name in gone(schema, parsed(path))} == rows.keys()
    now = parsed(folder / "values.yaml")
    for successor in rows.values():
        place: Any = now
        for name in successor.split("."):
            place = place[name]


def test_the_audits_render_or_say_what_to_set(chart: Helm, repository: Path) -> None:
    """With an image and a claim for the segments as then; without a claim the refusal names both ways."""
    kept = sorted(repository.glob("tests/data/upgrade/*/statewarden.values.yaml"))
    assert kept
    for values in kept:
        kinds = {
            row["kind"] for row in chart.objects(values, image__preloaded=True, events__create__enabled=True)
        }
        assert {"CronJob", "PersistentVolumeClaim"} <= kinds
        said = chart.refusal(values, image__preloaded=True)
        assert "events.existingClaim" in said
        assert "objectStore.bucket" in said
