"""One idea, one name: a detector or rule is in the code, in its registry, in the import contracts and on a page."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from typing import get_type_hints

import pytest

from agent.contract.runbooks import BY_PAGE, NAMES, page_of
from agent.detectors import DETECTORS
from agent.judging.base import Detector, DetectorMeta
from spark_rollup import correlate as rule_registry
from spark_rollup.fleet.meta import RuleMeta
from spark_rollup.registry import NAMING, PROOFS, REFUTING, module_of
from tests.support.every import every

DETECTOR_IDS = [detector.meta.id for detector in DETECTORS]
RULE_IDS = [rule.meta.id for rule in rule_registry.RULES]
PROOF_IDS = [meta.id for meta in (*PROOFS, *REFUTING)]


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


@pytest.mark.parametrize(
    ("package", "kind", "ids"),
    [
        ("agent.detectors", DetectorMeta, DETECTOR_IDS),
        ("spark_rollup.correlate", RuleMeta, RULE_IDS),
        ("spark_rollup.proofs", RuleMeta, PROOF_IDS),
    ],
)
def test_every_module_is_registered_under_its_name(package: str, kind: type, ids: list[str]) -> None:
    """The registry lists each detector (rule) once, and its id is its module's name in kebab-case."""
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+|[a-z]+", name) for name in ids)
    assert set(module_names(package, ids)) == declaring_modules(package, kind)


@every("detector", DETECTORS, ids=lambda x: x.meta.id)
def test_a_detector_takes_the_case_of_its_scope(detector: Detector) -> None:
    """The engine hands a case over by the scope in the metadata: the function expects that one."""
    asked = [docket.stories for docket in detector.dockets] or [detector.judge]
    assert {get_type_hints(one)["case"].scope for one in asked} == {detector.meta.scope}


@every("name", DETECTOR_IDS)
def test_a_detector_has_tests_and_a_page(repository: Path, name: str) -> None:
    """Each detector has its test file and its runbook."""
    assert (repository / f"tests/agent/detectors/test_{name.replace('-', '_')}.py").is_file()
    assert f'<a id="{name}"></a>' in (repository / f"docs/{page_of(name)}.md").read_text("utf-8")


def test_every_innocent_has_its_twin(repository: Path) -> None:
    """Each look-alike is named by a test, and the fixture `reached` sees that it is reached."""
    rules = {x.meta.id: [rule for docket in x.dockets for rule in docket.rules] for x in DETECTORS}
    files = (repository / "tests/agent/detectors").glob("test_*.py")
    parts = (part for file in files for part in ast.walk(ast.parse(file.read_text("utf-8"))))
    said = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    # "silent: NAME; NAME" in a table of cases
    named = said | {name for x in said for name in x.partition(": ")[2].split("; ")}
    innocents = {(id_, name) for id_, own in rules.items() for rule in own for name in rule.innocents}
    assert {x for x in innocents if x[1] not in named} == set()


def test_beside_the_rules_is_nothing(repository: Path) -> None:
    """What rules share lies elsewhere: the contract "rules are strangers" keeps all modules of the package apart."""
    names = {path.stem for path in (repository / "spark_rollup/correlate").glob("*.py")} - {"__init__"}
    assert names == {name.replace("-", "_") for name in RULE_IDS}


@every("name", RULE_IDS)
def test_a_rule_has_tests_and_a_page(repository: Path, name: str) -> None:
    """Each rule of the rollup has its test file and its runbook."""
    assert (repository / f"tests/spark_rollup/correlate/test_{name.replace('-', '_')}.py").is_file()
    assert f"rules/{name}" in NAMES


def test_what_names_an_incident_says_what_it_is_and_has_a_page(repository: Path) -> None:
    """Rules and what `verify` proves, each once; the page has the docstring of its module."""
    assert [x.id for x in NAMING] == [*RULE_IDS, *(x.id for x in PROOFS)]
    for meta in NAMING:
        assert importlib.import_module(module_of(meta)).META is meta
        page = (repository / f"docs/{page_of(f'rules/{meta.id}')}.md").read_text("utf-8")
        assert f'<a id="rules-{meta.id}"></a>' in page


def test_every_page_has_its_owner(repository: Path) -> None:
    """No runbook and no page is left behind by a detector or rule that is gone."""
    assert {*DETECTOR_IDS, *(f"rules/{x.id}" for x in NAMING)} == NAMES
    assert {page.stem for page in (repository / "docs/runbooks").glob("*.md")} == {*BY_PAGE, "README"}
