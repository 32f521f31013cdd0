"""Tables of lives: a row's name tells the life in field terms, its last value what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agent.contract.events import Confidence, Severity
from agent.judging.base import AgentCase
from tests.support.scenario import Scenario
from tests.support.scenario_case import judge

Said = list[tuple[Severity, Confidence]]
PROVED: Said = [(Severity.CRITICAL, Confidence.CONFIRMED)]
LIKELY: Said = [(Severity.CRITICAL, Confidence.SUSPECTED)]
WARNED: Said = [(Severity.WARNING, Confidence.CONFIRMED)]
SUSPECTED: Said = [(Severity.WARNING, Confidence.SUSPECTED)]
NOTED: Said = [(Severity.INFO, Confidence.CONFIRMED)]
REMARKED: Said = [(Severity.INFO, Confidence.SUSPECTED)]
UNKNOWN: Said = [(Severity.INFO, Confidence.UNKNOWN)]
QUIET: Said = []


def table(detector: str, names: str, rows: Mapping[str, tuple[Any, ...]]) -> pytest.MarkDecorator:
    """Parametrize a test; a row that ends with a sentence is silent for that innocent, or unknown, of the detector."""
    given = []
    for life, row in rows.items():
        *values, said = row
        is_twin = type(said) is str  # a severity is one, too
        marks = [pytest.mark.twin_of(detector, said)] if is_twin else []
        given.append(pytest.param(*values, QUIET if is_twin else said, marks=marks, id=life))
    return pytest.mark.parametrize(names, given)


def said(detector: str, one: AgentCase) -> Said:
    """What a detector says of a dossier: how loud, and how sure."""
    return [(x.severity, x.confidence) for x in judge(detector, one)]


def heard(detector: str, run: Scenario) -> Said:
    """What it said of a scenario up to now."""
    return [(x.severity, x.confidence) for x in run.findings(detector)]
