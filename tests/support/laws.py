"""Scenarios that only the laws watch: as if the fault were unknown."""

from __future__ import annotations

from typing import Any

from agent.contract.events import Severity
from agent.contract.finding import Finding
from agent.detectors import DETECTORS
from tests.support.scenario import TIMESTAMPED, Scenario

ALOS, EOS = "at_least_once", "exactly_once_v2"
LAWS = tuple(x for x in DETECTORS if x.meta.is_law)
"""Those that are about no known fault, in the order in which the later ones yield to the earlier."""

UNHEARD_OF = "5.1.0"
"""A release that no row of any table knows."""


def lawful(release: str, guarantee: str = ALOS, **more: Any) -> Scenario:
    """An application with one timestamped store `s`, unless configured otherwise, under the laws alone."""
    return Scenario(release, guarantee, **{"stores": {"s": TIMESTAMPED}, "detectors": LAWS, **more})


def broken(run: Scenario) -> list[str]:
    """Laws that were broken, each once."""
    return sorted({x.detector for x in run.findings() if x.severity is not Severity.INFO})


def said(run: Scenario, law: str) -> Finding:
    """What one law says, as the only one."""
    assert broken(run) == [law], [x.summary for x in run.findings()]
    return run.only(law)
