"""The benign twin of each detector and rule: a recorded run that looks like the fault and is none.

What the twin shows in the series that alerts read is stated here and becomes a promtool case of every alert of
the unit. `tests/deploy/test_alert_twins.py` (detectors) and `tests/spark_rollup/test_recorded.py` (rules) replay the
recordings and hold these statements against them. N1 to N25 are the look-alikes of `tests/benign`.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.contract.events import Severity


@dataclass(frozen=True, slots=True)
class Twin:
    """A benign look-alike of one unit.

    Args of the dataclass:
        what: What happened, a clause.
        recording: Directory below `tests/data/traces`.
        shows: Severity that the unit shows meanwhile; None = the unit says nothing.
    """

    what: str
    recording: str
    shows: Severity | None = None


DETECTORS: dict[str, Twin] = {
    "resurrected-checkpoint": Twin(
        "N8, the cleaner took the directory and the task came back with a full restoration",
        "control-8187-2.2.2",
    ),
    "carried-checkpoint": Twin(
        "the second owner wiped and restored beside the old checkpoint, and finished",
        "benign-8574-finished-2.1.1",
    ),
    "unowned-task": Twin("N7, an ordinary move, the cleaner comes later", "benign-move-3.9.2"),
    "stale-eos-checkpoint": Twin("the same flushes on a release without the bug", "control-20685-3.7.2"),
    "skipped-eos-wipe": Twin(
        "N23, killed before the first flush since the open", "control-20685-4.1.2-unflushed"
    ),
    "interrupted-wipe": Twin(
        "N14, a lost membership wiped all active tasks at once", "benign-eos-fencing-4.1.2"
    ),
    "unrestored-store": Twin("the same move on a release that restores", "control-7672-gap-2.2.1"),
    "changelog-truncated": Twin(
        "N22, an offset out of range, and the replay over the old files came back to where it was",
        "benign-upgrade-2.3.1-to-2.5.1-to-2.8.2",
    ),
    "offset-beyond-durable": Twin(
        "the second owner wiped and restored beside the old checkpoint, and finished",
        "benign-8574-finished-2.1.1",
    ),
    "store-shrank": Twin(
        "N8, the cleaner took the directory and the task came back with a full restoration",
        "control-8187-2.2.2",
    ),
    "data-beyond-changelog": Twin(
        "killed with flushes beyond the checkpoint, and everything was committed",
        "exposure-20685-crash-committed-4.1.2",
    ),
    "startup-pass": Twin("N6, a restart on a release without that pass", "benign-restart-alos-2.8.2"),
    "startup-lock-leak": Twin(
        "N18, the same start on the release with the fix", "control-20663-startup-lock-4.3.1"
    ),
    "unclean-store": Twin("N5, every close was clean", "benign-close-after-writes-alos-4.3.1"),
    "false-clean-store": Twin(
        "a dirty close whose wipe was not prevented", "control-dirty-close-wiped-4.3.1"
    ),
    "lost-segment": Twin("N5, segments closed clean, all with the same offset", "control-20663-close-4.3.0"),
    "stale-segment-offset": Twin("N5, segments closed clean", "control-20663-close-4.3.0"),
    "premature-cleanup": Twin("N8, the cleaner waited for its delay", "control-20805-4.2.1"),
    "regressed-checkpoint": Twin(
        "the step of one that the upgrade from 2.5 to 2.6 makes", "benign-upgrade-2.3.1-to-2.5.1-to-2.8.2"
    ),
    "frozen-checkpoint": Twin(
        "N1, a clean start that goes on writing checkpoints", "benign-restart-alos-2.8.2"
    ),
    "malformed-checkpoint": Twin("a crash loop in the midst of starts", "benign-crash-loop-4.0.2"),
    "overlaid-store": Twin(
        "N22, a crash under at-least-once, replayed over the old files",
        "benign-crash-alos-2.8.2",
        Severity.INFO,
    ),
    "foreign-checkpoint": Twin(
        "the normal noise of releases up to 2.2.1", "benign-eos-crash-2.1.1", Severity.INFO
    ),
    "torn-store": Twin("N12, `cleanUp()` took everything within seconds", "benign-cleanup-call-3.9.2"),
    "zombie-state": Twin("N6, a quiet store was restarted soon", "benign-restart-eos-4.1.2"),
    "orphaned-task": Twin("N7, the cleaner will take what was left behind", "benign-move-3.9.2"),
    "shared-state-dir": Twin(
        "two applications side by side in one directory", "benign-two-apps-one-dir-3.9.2"
    ),
    "temp-cleaner": Twin("segments of a window expired under a held lock", "benign-window-expiry-3.9.2"),
    "layout-conflict": Twin(
        "N17, an orderly upgrade to offsets in the store", "benign-upgrade-chain-2.8.2-to-4.3.1"
    ),
    "wipe-storm": Twin("N14, one fencing wiped many tasks once", "benign-eos-fencing-4.1.2"),
    "auditor-blind": Twin(
        "a state directory without a persistent store", "benign-inmemory-4.1.2", Severity.INFO
    ),
}
"""Two have none: `ephemeral-state-dir` is about a volume, `missing-fact` about settings; no run looks like either."""

RULES: dict[str, Twin] = {
    "resurrected-checkpoint": Twin("N8, cleaned and restored in full elsewhere", "control-8187-2.2.2"),
    "unrestored-task": Twin("N7 and N15, the new owner restored in full", "benign-move-3.9.2"),
    "stale-eos-state": Twin("the same crash on the release with the fix", "control-9891-2.5.1"),
    "diverged-replica": Twin("N20, a standby that is behind catches up", "benign-rolling-standby-3.9.2"),
    "cloned-process": Twin("a task moved, each pod kept its process id", "benign-move-3.9.2"),
    "cloned-volume": Twin("N7, a task moved, its identities did not", "benign-move-3.9.2"),
    "split-owner": Twin(
        "N14, a frozen member comes back and finds itself fenced", "benign-eos-fencing-4.1.2"
    ),
    "missing-standby": Twin("N6, a rolling restart with standbys", "benign-rolling-standby-3.9.2"),
    "unprotected-task": Twin("N6, a rolling restart with standbys", "benign-rolling-standby-3.9.2"),
    "task-churn": Twin("N6, a rolling restart moves each task once or twice", "benign-rolling-standby-3.9.2"),
    "unaudited": Twin("agents that said that they stop", "benign-move-3.9.2"),
}
