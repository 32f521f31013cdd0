"""Findings that agents count as open and that are not in the input: with one of them nothing is an all-clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.contract.events import Severity
from agent.contract.wording import named
from spark_rollup.report.story import pod_name

Row = Mapping[str, Any]


def missed(coverage: Sequence[Row]) -> dict[Severity, int]:
    """Count them by severity, the worst first; only what is there."""
    counts = {
        Severity.CRITICAL: sum(row["missed_criticals"] for row in coverage),
        Severity.WARNING: sum(row["missed_warnings"] for row in coverage),
    }
    return {severity: number for severity, number in counts.items() if number}


def of_whom(coverage: Sequence[Row]) -> list[str]:
    """Name the pods of those agents."""
    several = len({row["namespace"] for row in coverage}) > 1
    return [pod_name(row, several) for row in coverage if row["missed_criticals"] or row["missed_warnings"]]


def in_words(coverage: Sequence[Row]) -> str:
    """Say it as part of a verdict; empty if everything is known."""
    counts = missed(coverage)
    words = " and ".join(
        f"{number} {severity.value}{'' if number == 1 else 's'}" for severity, number in counts.items()
    )
    return (
        f"agents count {words} that {_is(counts)} not in the input ({named(of_whom(coverage))})"
        if counts
        else ""
    )


def _is(counts: Mapping[Severity, int]) -> str:
    return "is" if sum(counts.values()) == 1 else "are"
