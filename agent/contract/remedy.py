"""What kind of step a finding asks for: what a script may do, and what a person has to find out first. Pure."""

from __future__ import annotations

from enum import StrEnum


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
