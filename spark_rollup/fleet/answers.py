"""Answers to whether a pod may be restarted; what they mean for people: `report.restart_answer`."""

from __future__ import annotations

SAFE, NOT_RUNNING, RESTORE, UNKNOWN = "safe", "not-running", "restore", "unknown"
KEEP, CLEAN_ONLY, DAMAGED = "keep", "clean-stop-only", "damaged"
