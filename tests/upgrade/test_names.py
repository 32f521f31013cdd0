"""Names of an older release that others rely on: each is there, or `docs/compatibility.md` says what replaces it."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from pyspark.sql import types as T

from agent.cli.main import make_parser
from agent.config import AgentSettings
from agent.delivery import KubernetesSettings, PrivacySettings, ShipSettings
from agent.inventory.settings import KEYS
from spark_rollup import schemas
from spark_rollup.arguments import parser

PAGE = Path(__file__).parents[2] / "docs"
DEPLOY = PAGE.parent / "deploy"
METRIC = re.compile(r"^[|] `(statewarden_\w+)` [|] \w+ [|] (.*?) [|] (stable|experimental) [|]", re.MULTILINE)
GROUPS = {
    "agent": AgentSettings,
    "ship": ShipSettings,
    "privacy": PrivacySettings,
    "kubernetes": KubernetesSettings,
}
TABLES = {
    "findings": schemas.FINDING,
    "timelines": schemas.TIMELINE,
    "coverage": schemas.COVERAGE,
    "pods": schemas.PODS,
    "churn": schemas.CHURN,
    "restarts": schemas.RESTARTS,
    "quarantine": schemas.QUARANTINE,
}


def commands(made: argparse.ArgumentParser, before: str) -> Iterator[str]:
    """List commands and their options."""
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield f"{before} {name}"
                yield from (f"{before} {name} {x}" for each in inner._actions for x in each.option_strings)
                yield from commands(inner, f"{before} {name}")


def columns(table: T.StructType) -> dict[str, str]:
    """Give the columns with their types."""
    return {field.name: field.dataType.simpleString() for field in table.fields}


def named_in(pattern: str) -> set[str]:
    """List names in the alert rules."""
    return {
        name for path in DEPLOY.glob("alerts/*.yaml") for name in re.findall(pattern, path.read_text("utf-8"))
    }


def names_now() -> set[str]:
    """List every name of this release."""
    metrics = METRIC.findall((PAGE / "metrics.md").read_text("utf-8"))
    return {
        *commands(make_parser(), "statewarden"),
        *commands(parser(), "statewarden-rollup"),
        *(f"detector {path.stem}" for path in PAGE.glob("detectors/*.md")),
        *(f"rule {path.stem}" for path in PAGE.glob("rules/*.md")),
        *(f"setting {group}.{row.name}" for group, kind in GROUPS.items() for row in fields(kind)),
        *(f"fact {key.name}" for key in KEYS),
        *(f"metric {name}" for name, _, _ in metrics),
        *(
            f"label {label} of {name}"
            for name, labels, stability in metrics
            if stability == "stable"
            for label in re.findall(r"`(.*?)`", labels)
        ),
        *(f"alert {name}" for name in named_in(r"alert: (\w+)")),
        *(f"recorded {name}" for name in named_in(r"record: (\S+)")),
        *(f"board {json.loads(path.read_text())['uid']}" for path in DEPLOY.glob("dashboards/*.json")),
        *(
            f"column {table}.{name} {kind}"
            for table, row in TABLES.items()
            for name, kind in columns(row).items()
        ),
    }


def names_then(then: Path) -> set[str]:
    """List every name of the older release; of metrics the stable ones."""
    surface = json.loads((then / "surface.json").read_text())
    found = {
        f"{program} {command}{option and ' '}{option}"
        for program in ("statewarden", "statewarden-rollup")
        for command, options in surface[program].items()
        for option in ("", *options)
    }
    stable = {name: row for name, row in surface["metrics"].items() if row["stability"] == "stable"}
    return {
        *found,
        *(
            f"{kind} {name}"
            for kind in ("detector", "rule", "alert", "board")
            for name in surface[f"{kind}s"]
        ),
        *(f"setting {group}.{name}" for group, row in surface["settings"].items() for name in row),
        *(f"fact {name}" for name in surface["facts"]),
        *(f"metric {name}" for name in stable),
        *(f"label {label} of {name}" for name, row in stable.items() for label in row["labels"]),
        *(f"recorded {name}" for name in surface["recorded"]),
        *(
            f"column {table}.{name} {kind}"
            for table, row in surface["tables"].items()
            for name, kind in row.items()
        ),
    }


@pytest.fixture(scope="module")
def replaced() -> set[str]:
    """List the names that the page says are gone."""
    section = (PAGE / "compatibility.md").read_text("utf-8").partition("\n## Names that are gone\n")[2]
    return set(re.findall(r"^\| `(.*?)` \|", section.partition("\n## ")[0], re.MULTILINE))


def is_named(name: str, replaced: set[str]) -> bool:
    """Return whether a name, or the command that it is an option of, is on the page."""
    return name in replaced or any(name.startswith(f"{gone} -") for gone in replaced)


def test_each_name_is_there_or_replaced(then: Path, replaced: set[str]) -> None:
    """Commands and options, detectors and rules, settings, stable metrics with labels, alerts, boards, columns."""
    gone = names_then(then) - names_now()
    assert sorted(name for name in gone if not is_named(name, replaced)) == []
    assert sorted(replaced & names_now()) == []
