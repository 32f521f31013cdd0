"""What alerts need to know of a detector or rule beyond its own metadata: how long to wait, and what follows."""

from __future__ import annotations

from dataclasses import dataclass

from agent.contract.events import Level


@dataclass(frozen=True, slots=True)
class AlertFacts:
    """What the metadata of a unit does not say.

    Args of the dataclass:
        consequence: What it means for the data, one or two sentences.
        for_m: Minutes that a warning must last; None = by the kind of statement.
    """

    consequence: str
    for_m: int | None = None


WAIT_M = {Level.DAMAGE: 5, Level.EVENT: 5, Level.EXPOSURE: 15, Level.SELF: 15}
"""Minutes that a warning must last, by level: what a rolling restart shows for a while must not be a ticket."""

INFO_WAIT_M = 60

BY_LEVEL = {
    Level.DAMAGE: "What is computed from this state may be wrong.",
    Level.EXPOSURE: "Nothing is lost yet; one more step loses data or costs a full restoration.",
    Level.EVENT: "Nothing is lost by itself.",
    Level.SELF: "Nothing is said about the application meanwhile: silence is no proof.",
}
"""Consequence where a rule names none."""

_WRONG = (
    "The store lacks records that the task believes it has: results are wrong and go to output and changelog."
)
_UNCOMMITTED = (
    "Aborted records are in the store: sums count twice, and wrong results go to output and changelog."
)

DETECTORS: dict[str, AlertFacts] = {
    "resurrected-checkpoint": AlertFacts(_WRONG),
    "carried-checkpoint": AlertFacts(_WRONG),
    "unowned-task": AlertFacts("The cleaner is about to delete a directory that may still be needed.", 5),
    "stale-eos-checkpoint": AlertFacts(
        "A crash or SIGKILL now leaves uncommitted records in the store, and the next start trusts them.", 30
    ),
    "skipped-eos-wipe": AlertFacts(_UNCOMMITTED),
    "interrupted-wipe": AlertFacts("Uncommitted records may have been kept; the disk alone cannot show it."),
    "unrestored-store": AlertFacts(_WRONG),
    "changelog-truncated": AlertFacts(
        "The store holds what its changelog does not: after a reset it counts twice, after a loss it is the only copy."
    ),
    "offset-beyond-durable": AlertFacts(_WRONG),
    "store-shrank": AlertFacts("Entries are gone from the store: what is computed from it may be wrong."),
    "data-beyond-changelog": AlertFacts(_UNCOMMITTED),
    "startup-pass": AlertFacts("The start takes longer; nothing else.", 30),
    "startup-lock-leak": AlertFacts("The next start replays or wipes more than it had to."),
    "unclean-store": AlertFacts(
        "Under exactly-once the next assignment wipes the store and restores it in full."
    ),
    "false-clean-store": AlertFacts(_UNCOMMITTED),
    "lost-segment": AlertFacts(
        "Windows are gone from the store or hold too little, now or from the next start on; no replay brings them back."
    ),
    "stale-segment-offset": AlertFacts("The next start replays from far back, or restores in full."),
    "premature-cleanup": AlertFacts("A copy is gone that was to be kept: the task restores in full."),
    "regressed-checkpoint": AlertFacts("The start replays more than needed, if the offset comes back."),
    "frozen-checkpoint": AlertFacts("A crash now costs a replay of everything since that checkpoint."),
    "malformed-checkpoint": AlertFacts(
        "The next start fails or restores in full; the volume may be failing."
    ),
    "overlaid-store": AlertFacts("Keys that were deleted may be back."),
    "foreign-checkpoint": AlertFacts(
        "A bug of the release wrote it; on this release it may decide a restoration."
    ),
    "torn-store": AlertFacts("The store cannot be opened whole; up to 4.2 a start makes an empty one."),
    "zombie-state": AlertFacts("Keys that were deleted while the directory was idle are back."),
    "orphaned-task": AlertFacts("It takes disk space until it is removed by hand.", 60),
    "shared-state-dir": AlertFacts("Two processes write the same stores: they destroy each other's state."),
    "temp-cleaner": AlertFacts("The store works until its next open, and fails then."),
    "ephemeral-state-dir": AlertFacts("Every start of the pod restores all its state in full.", 30),
    "layout-conflict": AlertFacts("A downgrade onto this directory fails, or loses the stored offsets.", 30),
    "wipe-storm": AlertFacts("Every wipe is a full restoration: the task does little else."),
    "missing-fact": AlertFacts("Some detectors are silent or unsure for this application."),
    "auditor-blind": AlertFacts("What happened meanwhile is unknown, and silence is no proof."),
}

RULES: dict[str, AlertFacts] = {
    "resurrected-checkpoint": AlertFacts(_WRONG),
    "unrestored-task": AlertFacts(_WRONG),
    "stale-eos-state": AlertFacts(_UNCOMMITTED + " Pods that restored from it since have them too."),
    "cloned-process": AlertFacts(
        "Under exactly_once_v2 both fence each other without end: every task is wiped again and again, and no work is done."
    ),
    "missing-standby": AlertFacts(
        "If the last copy goes, the task restores from its changelog; up to 2.2.1 it loses data."
    ),
    "unaudited": AlertFacts("There, no finding means unknown, not fine."),
}
"""Rules that are not here say what `BY_LEVEL` says."""
