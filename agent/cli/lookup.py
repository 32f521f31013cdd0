"""What an operator has in hand, an alert's name, an issue's key or a word half remembered -> runbooks."""

from __future__ import annotations

import re

_ALERT = re.compile(r"Statewarden(Fleet)?([A-Z]\w*?)(?:Suspected|Exposed)?", re.ASCII)
_ISSUE = re.compile(r"(?:KAFKA|KIP)-\d+", re.ASCII | re.IGNORECASE)
_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


def of_alert(asked: str) -> str | None:
    """Give the runbook of an alert, as `detectors/ID` or `rules/ID`; None = it is no alert's name.

    `StatewardenSkippedEosWipeSuspected` is `detectors/skipped-eos-wipe`.
    """
    found = _ALERT.fullmatch(asked)
    if found is None:
        return None
    return f"{'rules' if found[1] else 'detectors'}/{_HUMP.sub('-', found[2]).lower()}"


def is_issue(asked: str) -> bool:
    """Return whether it is the key of an issue, `KAFKA-20685` or `KIP-1035`."""
    return _ISSUE.fullmatch(asked) is not None


def slug_of(asked: str) -> str:
    """Give the bare word, as detectors and rules are called: of `StatewardenRollupStale` that is `rollup-stale`."""
    word = (of_alert(asked) or asked).removeprefix("detectors/").lower()
    return word.removeprefix("statewarden")
