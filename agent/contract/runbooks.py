"""Where a runbook is: one page per mechanism below `docs/runbooks`, one anchor per detector or rule."""

from __future__ import annotations

_ON_PAGE = {
    "uncommitted-data": "skipped-eos-wipe stale-eos-checkpoint rules/stale-eos-state",
    "unfinished-wipe": "interrupted-wipe false-clean-store data-beyond-changelog",
    "unrestored": "unrestored-store rules/unrestored-task skipped-record",
    "offset-without-data": "offset-beyond-durable store-shrank",
    "old-offset": "resurrected-checkpoint rules/resurrected-checkpoint carried-checkpoint unowned-task",
    "damaged-files": "torn-store deleted-while-held malformed-checkpoint",
    "unflushed-segment": "lost-segment stale-segment-offset",
    "short-changelog": "changelog-truncated overlaid-store zombie-state",
    "refused-task": "unopenable-task startup-lock-leak frozen-checkpoint",
    "shared-state": "setup rules/cloned-process rules/cloned-volume rules/split-owner",
    "unequal-copies": "rules/diverged-replica rules/state-differs rules/replicas-differ",
    "too-few-copies": (
        "rules/missing-standby rules/unprotected-task rules/task-churn premature-cleanup orphaned-task"
    ),
    "unwatched": "auditor-blind undecided rules/unaudited",
}

BY_PAGE = {page: tuple(names.split()) for page, names in _ON_PAGE.items()}
"""Page -> the runbooks on it, in their order: the id of a detector, or `rules/ID`."""

_PAGE = {name: page for page, names in BY_PAGE.items() for name in names}
NAMES = frozenset(_PAGE)


def page_of(name: str) -> str:
    """Return the page of a runbook, below `docs` and without `.md`.

    `name`: `torn-store`, `detectors/torn-store` or `rules/unaudited`. Raises `KeyError`: there is no such runbook.
    """
    return f"runbooks/{_PAGE[name.removeprefix('detectors/')]}"


def anchor_of(name: str) -> str:
    """Return the anchor of a runbook on its page: `rules-unaudited` for a rule, the id for a detector."""
    return name.removeprefix("detectors/").replace("/", "-")


def address_of(name: str, ending: str) -> str:
    """Return page and anchor, the page with an ending: `runbooks/unwatched.html#rules-unaudited`."""
    return f"{page_of(name)}{ending}#{anchor_of(name)}"
