"""Detector `changelog-truncated`: the changelog ends before what the store holds.

Signal: changelog offsets of one incarnation of a store, in checkpoints, and from 4.3 on in the store itself (of a
windowed store in the segment that answered when it was opened; known of 4.3.1 only).
Fires when an offset falls while the store stays open (`falls`), and when a replay from the start ends below what the
store had (`changelog_ends`): the changelog was recreated or cut, or the application was reset without `cleanUp()`.
Clears when the incarnation is gone: the task was wiped, or its directory removed.
Source: AbstractSegments.committedOffset and commit (4.3.1); StoreChangelogReader.hasRestoredToEnd and
pollRecordsFromRestoreConsumer, DefaultStateUpdater.handleTaskCorruptedException (3.9.1, 4.3.1),
AbstractColumnFamilyAccessor.commit (4.3.1): a position beyond the end is out of range, which drops the offset and keeps
the files under at-least-once, or counts as restored; docs/state-format.md#d11.
"""

from __future__ import annotations

from agent.judging.base import DetectorMeta, Mechanism, Remedy, Twin
from agent.judging.changelog_ends import DOCKETS
from agent.judging.falls import DOCKETS as FALLS
from agent.judging.rule import detector, first_of

META = DetectorMeta(
    id="changelog-truncated",
    title="Changelog ends before what the store holds",
    mechanism=Mechanism.SHORT_CHANGELOG,
    needs=("kafka_streams_version", "processing_guarantee"),
    remedy=Remedy.KEEP,
    next_action=(
        "Delete no copy yet. Find out whether the application was reset, or its changelog recreated or cut"
        " (kafka-get-offsets --time latest below the old offset). After a reset: stop all instances cleanly, keep"
        " copies, remove this task directory on each, and reset again, with `cleanUp()` before the start. If the"
        " changelog lost records, this copy is the only complete one: keep it, and get help before you stop or start an"
        " instance: either can move the task."
    ),
    consequence=(
        "The store holds records that its changelog lacks: after a reset they count twice, after a loss they exist"
        " only here."
    ),
    twin=Twin(
        "N22, an offset out of range, and the replay over the old files came back to where it was",
        "benign-upgrade-2.3.1-to-2.5.1-to-2.8.2",
    ),
)

DETECTOR = detector(META, *FALLS, *DOCKETS, keep=first_of(lambda x: x.store.name))
