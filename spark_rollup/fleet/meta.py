"""What a rule says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent.contract.events import Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin

Row = dict[str, Any]
"""One row of an output table, column -> value: mostly `schemas.FINDING`."""


@dataclass(frozen=True, slots=True)
class RuleMeta:
    """Identity of a rule."""

    id: str  # kebab-case; also the module's name (in snake case) and the docs page's
    title: str  # one line for lists
    level: Level  # kind of statement that it makes
    severity: Severity  # the highest it gets
    upstream: tuple[str, ...] = ()  # upstream issue keys
    needs: tuple[str, ...] = ()  # settings that it cannot decide without, or decides better with
    mechanism: Mechanism | None = None  # what goes wrong; None = what this rule alone is about
    joined_by: tuple[tuple[str, ...], ...] = (("application_id", "task_id"),)
    """Columns of `FINDING`: findings of one mechanism with the same values in one of these sets are one incident
    while they last, unless agents know better. With `pods` one of those in common is enough."""
    asks: tuple[str, ...] = ()  # agents' detectors whose findings it checks against every reading of the task
    consequence: str = ""  # what it means for the data, one or two sentences; empty = what the level says
    alert_after_m: int | None = None  # minutes that a warning must last before its alert; None = by the level
    twin: Twin | None = None  # its benign twin
