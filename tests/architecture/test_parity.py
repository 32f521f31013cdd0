"""One idea, one name: a detector or rule is in the code, in its registry, in the import contracts and on a page."""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from pathlib import Path
from typing import get_type_hints

import pytest

from agent.detectors import DETECTORS
from agent.judging.base import Detector, DetectorMeta
from spark_rollup.correlate import registry as rule_registry
from spark_rollup.correlate.base import RuleMeta

DETECTOR_IDS = [detector.meta.id for detector in DETECTORS]
RULE_IDS = [rule.meta.id for rule in rule_registry.RULES]


def declaring_modules(package: str, kind: type) -> set[str]:
    """List the modules of a package that carry metadata of this kind."""
    found = set()
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, prefix=f"{package}."):
        if any(isinstance(value, kind) for value in vars(importlib.import_module(module.name)).values()):
            found.add(module.name)
    return found


def module_names(package: str, ids: list[str]) -> list[str]:
    """Spell ids as modules of the package."""
    return [f"{package}.{name.replace('-', '_')}" for name in ids]


def independent_modules(repository: Path, contract: str) -> list[str]:
    """Read which modules an independence contract keeps apart."""
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (modules,) = [found["modules"] for found in contracts if found["name"] == contract]
    return list(modules)


@pytest.mark.parametrize(
    ("package", "kind", "ids"),
    [("agent.detectors", DetectorMeta, DETECTOR_IDS), ("spark_rollup.correlate", RuleMeta, RULE_IDS)],
)
def test_every_module_is_registered_under_its_name(package: str, kind: type, ids: list[str]) -> None:
    """The registry lists each detector (rule) once, and its id is its module's name in kebab-case."""
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+|[a-z]+", name) for name in ids)
    assert set(module_names(package, ids)) == declaring_modules(package, kind)


@pytest.mark.parametrize("detector", DETECTORS, ids=DETECTOR_IDS)
def test_a_detector_takes_the_case_of_its_scope(detector: Detector) -> None:
    """The engine hands a case over by the scope in the metadata: the function expects that one."""
    assert get_type_hints(detector.judge)["case"].scope is detector.meta.scope


def test_the_contract_keeps_all_rules_apart(repository: Path) -> None:
    """The independence contract names every rule and nothing else; that of the detectors is a wildcard."""
    expected = sorted(module_names("spark_rollup.correlate", RULE_IDS))
    assert independent_modules(repository, "rules are strangers") == expected


@pytest.mark.parametrize("name", DETECTOR_IDS)
def test_a_detector_has_tests_and_a_page(repository: Path, name: str) -> None:
    """Each detector has its test file and its page."""
    assert (repository / f"tests/agent/detectors/test_{name.replace('-', '_')}.py").is_file()
    assert (repository / f"docs/detectors/{name}.md").is_file()


def test_a_rule_points_at_its_page() -> None:
    """The page that a rule names in its metadata is the one that exists."""
    assert [rule.meta.docs for rule in rule_registry.RULES] == [f"rules/{name}.md" for name in RULE_IDS]


@pytest.mark.parametrize("name", RULE_IDS)
def test_a_rule_has_tests_and_a_page(repository: Path, name: str) -> None:
    """Each rule of the rollup has its test file and its page."""
    assert (repository / f"tests/spark_rollup/correlate/test_{name.replace('-', '_')}.py").is_file()
    assert (repository / f"docs/rules/{name}.md").is_file()


def test_every_page_has_its_owner(repository: Path) -> None:
    """No page is left behind by a detector or rule that is gone."""
    assert {page.stem for page in (repository / "docs/detectors").glob("*.md")} <= set(DETECTOR_IDS)
    assert {page.stem for page in (repository / "docs/rules").glob("*.md")} <= set(RULE_IDS)
