"""One place per fact: who adds or changes one edits its module and its line in a table, and nothing else.

A name that is spelled a second time in the code is a second place to edit, which nothing points at.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from agent.contract.mechanisms import INSTRUCTIONS_FIRST
from agent.delivery import KINDS
from agent.detectors import DETECTORS
from agent.layout import names
from spark_rollup.registry import NAMING, REFUTING

FILE_NAMES = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)} - {
    names.TEMP_SUFFIX,
    names.OFFSETS_FAMILY,
}
"""The agent's own half-written files have that suffix, too, and a field of the contract is called `offsets`."""

ELSEWHERE = {
    **{
        (
            "agent/contract/mechanisms.py",
            name,
        ): "one order of instructions for detectors and rules, which are strangers"
        for name in INSTRUCTIONS_FIRST
    },
    ("tools/alerts/of_health.py", "torn-store"): "an example in a test of an alert about any detector",
}
"""Places that may spell the id of a detector or rule; each with the reason."""


@cache
def spelled(path: Path) -> frozenset[str]:
    """Give the texts in a module that are no docstrings, a leading slash left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return frozenset(
        node.value.removeprefix("/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    )


def modules(repository: Path, *packages: str) -> Iterator[tuple[str, Path]]:
    """List the modules of packages by their path in the repository."""
    for package in packages:
        for path in sorted((repository / package).rglob("*.py")):
            yield path.relative_to(repository).as_posix(), path


def strange(repository: Path, wanted: Iterable[str], packages: Iterable[str]) -> set[tuple[str, str]]:
    """List (module, name) where a name is spelled outside of the module that has it."""
    return {
        (place, text)
        for place, path in modules(repository, *packages)
        for text in spelled(path).intersection(wanted)
        if path.stem != text.replace("-", "_")
    }


def test_the_agent_names_no_detector_outside_its_module(repository: Path) -> None:
    """Engine, ledger, metrics and page go by metadata: a detector that is added or goes leaves them alone."""
    assert strange(repository, {x.meta.id for x in DETECTORS}, ["agent"]) <= set(ELSEWHERE)


def test_the_rollup_names_no_rule_outside_its_module(repository: Path) -> None:
    """Audit, history, report and gate go by metadata. (Rules name the agents' detectors that they judge.)"""
    rules = {x.id for x in (*NAMING, *REFUTING)} - {x.meta.id for x in DETECTORS}
    assert strange(repository, rules, ["spark_rollup"]) == set()


def test_the_tools_name_no_detector_or_rule(repository: Path) -> None:
    """What alerts and pages need of a detector or rule is in its metadata."""
    ids = {x.meta.id for x in DETECTORS} | {x.id for x in (*NAMING, *REFUTING)}
    assert strange(repository, ids, ["tools"]) <= set(ELSEWHERE)


def test_a_sink_is_known_to_its_module_and_the_table(repository: Path) -> None:
    """Its library and its extra are in `agent/delivery.py` only: everything else asks the target's kind."""
    wanted = {text for kind in KINDS for text in (kind.library, kind.extra) if text and text != kind.module}
    assert {place for place, _ in strange(repository, wanted, ["agent"])} == {"agent/delivery.py"}


def test_a_sinks_library_is_an_extra_and_has_one_owner(repository: Path) -> None:
    """The extra exists, and the import contract forbids the library everywhere but in the sinks."""
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    (owned,) = (
        set(contract["forbidden_modules"])
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"] == "sinks own their libraries"
    )
    assert owned == {kind.library for kind in KINDS if kind.library}
    assert {kind.extra for kind in KINDS if kind.extra} <= set(project["project"]["optional-dependencies"])


def test_file_names_of_kafka_streams_are_in_the_layout(repository: Path) -> None:
    """A name that a release changes is changed in `agent/layout`."""
    found = strange(repository, FILE_NAMES, ["agent"])
    assert {(place, text) for place, text in found if not place.startswith("agent/layout/")} == set()


def test_limits_of_a_format_are_set_once(repository: Path) -> None:
    """How much of a file is read is set beside its parser, and whoever reads the file imports it."""
    set_in: dict[str, set[str]] = {}
    for place, path in modules(repository, "agent"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                if isinstance(target, ast.Name) and target.id.startswith("MAX_"):
                    set_in.setdefault(target.id, set()).add(place)
    of_layout = {name: places for name, places in set_in.items() if any("/layout/" in x for x in places)}
    assert len(of_layout) > 3
    assert [name for name, places in of_layout.items() if len(places) > 1] == []
