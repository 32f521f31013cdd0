"""What a detector of the agent and a rule of the rollup say of themselves in the same words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent.contract.events import Severity


class Remedy(StrEnum):
    """What becomes of the task's directory."""

    RESTORE = "restore"
    """Copy it, remove it, start: the task is restored from its changelog."""
    CHECK_FIRST = "check-first"
    """The same, once a person has made the check that the step names."""
    KEEP = "keep"
    """Nothing may be removed: it may be the only complete copy."""
    OTHER = "other"
    """Its removal is no part of the step."""


WRONG_RESULTS = (
    "The store lacks records that the task believes it has. Wrong results go to output and changelog."
)
UNCOMMITTED_RESULTS = (
    "The store contains aborted records. Sums are counted twice, and wrong results go to output and"
    " changelog."
)
"""Consequences that several of them have."""

WRITTEN_SINCE = (
    "If the task was active here, what it wrote to its changelog and output topics since the store was opened stays"
    " wrong on every pod and must be reprocessed."
)
"""The end of an instruction: what no restoration repairs."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The benign twin of a detector or rule: a recorded run that looks like the fault and is none.

    Its alerts are tested with what the twin shows. `tests/deploy/test_alert_twins.py` (detectors) and
    `tests/spark_rollup/test_recorded.py` (rules) replay the recording and compare.
    """

    what: str  # what happened, a clause; N1 to N25 are the look-alikes of `docs/state-format.md`
    recording: str  # directory below `tests/data/traces`
    shows: Severity | None = None  # severity that is shown meanwhile; None = nothing is reported
