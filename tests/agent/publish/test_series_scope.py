"""Which series of a detector can become more than zero is what the detector does."""

from __future__ import annotations

import ast
import importlib
import inspect

import pytest

from agent.contract.events import Severity
from agent.detectors import DETECTORS, auditor_blind, stale_eos_checkpoint, undecided
from agent.judging.base import Detector
from agent.publish.series_scope import reach_of


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda x: x.meta.id)
def test_a_detector_of_one_guarantee_is_silent_under_the_other(detector: Detector) -> None:
    """What the metadata says is the guard at the beginning of its judgement, and nothing is said a second time."""
    if detector.dockets:
        return  # the guard of all that are made of rules: tests/agent/judging/test_rule.py
    module = importlib.import_module(detector.judge.__module__)
    (judge,) = ast.parse(inspect.getsource(module.judge)).body
    assert isinstance(judge, ast.FunctionDef)
    guards = [x for x in judge.body if isinstance(x, ast.If) and isinstance(x.body[0], ast.Return)]
    parts = [ast.unparse(y) for x in guards for y in _parts(x.test)]
    says_where = detector.meta.exactly_once is not None or bool(detector.meta.silent_where)
    assert parts.count("case.is_silent(META)") == says_where
    assert not [x for x in parts if x.startswith("case.settings.exactly_once is not")]


def _parts(test: ast.expr) -> list[ast.expr]:
    """List what each alone makes a guard hold."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]


def test_severities_end_with_the_highest() -> None:
    """A remark is never a page."""
    assert reach_of(undecided.META).severities[-1] == "warning"
    assert reach_of(stale_eos_checkpoint.META).severities == tuple(x.value for x in Severity)


def test_places_are_those_that_it_judges() -> None:
    """Applications of its guarantee, if that is known; the agent itself where it judges that."""
    applications = {"a": True, "b": False, "c": None}
    assert reach_of(stale_eos_checkpoint.META).places(applications) == ["a"]
    assert reach_of(undecided.META).places(applications) == ["a", "b", "c"]
    assert reach_of(auditor_blind.META).places(applications) == [""]
