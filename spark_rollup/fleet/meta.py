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
    """Identity of a rule.

    Args of the dataclass:
        id: Kebab-case; also the module's name (in snake case) and the docs page's.
        title: One line for lists.
        level: Kind of statement that it makes.
        severity: The highest it gets.
        upstream: Upstream issue keys.
        needs: Settings that it cannot decide without, or decides better with.
        mechanism: What goes wrong; None = what this rule alone is about.
        joined_by: Columns of `FINDING`: findings of one mechanism with the same values in one of these sets are one
            incident while they last, unless agents know better. With `pods` one of those in common is enough.
        asks: Agents' detectors whose findings it checks against every reading of the task.
        consequence: What it means for the data, one or two sentences; empty = what the level says.
        alert_after_m: Minutes that a warning must last before its alert; None = by the level.
        twin: Its benign twin.
    """

    id: str
    title: str
    level: Level
    severity: Severity
    upstream: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    mechanism: Mechanism | None = None
    joined_by: tuple[tuple[str, ...], ...] = (("application_id", "task_id"),)
    asks: tuple[str, ...] = ()
    consequence: str = ""
    alert_after_m: int | None = None
    twin: Twin | None = None
