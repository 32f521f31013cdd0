"""Detector `changelog-truncated`: the changelog ends before what the store holds.

Signal: changelog offsets of one incarnation of a store: checkpoints, and from 4.3 on the offset in the store itself (of
a windowed store the one of the segment that answered for it when it was opened; known of 4.3.1 only).
Fires when an offset falls while the store stays open, or below the one that its opening trusted: no replay does that,
so the changelog was recreated or cut, or the application was reset without `cleanUp()`. Fires, too, after an opening
without an offset in force (out of range, 2.6 and later): the changelog was replayed from its start, and the offset with
which that ended (3.5 and later), or that no longer moves, is below what the store had; critical from 3.8 on where the
replay ended there and the process itself had dropped the offset, in a task of key-value stores. From 4.3 on it is
enough that the process emptied the store's `offsets` and opened it again: the changelog of a key-value store is
compacted, so its beginning does not move. Suspected as well where a session that was closed clean had put far
more than its offset advanced: the changelog began again below it.
Clears when the incarnation is gone: the task was wiped, or its directory removed.
Stays quiet for a replay that is still on its way up, for the step of one from 2.5 to 2.6, for standbys up to 2.4 that
read again, for a copy that was put back (its checkpoint is older than the last one, or came while no process held the
store), for a changelog that was switched off, for windowed stores whose changelog has expired, and for segments that
held more than the one that answered.
Blind spots: a store whose changelog is a source topic; an agent that never saw the higher offset; under exactly-once up
to 4.2 a changelog that has grown past it before the first orderly close, if a kill wipes the task before that; from 4.3
on a changelog that has grown past it before the store is flushed, if the offset was not out of range (puts is unknown
from commits there), a removal in a task with a windowed store or a source topic in place of a changelog, and a windowed
store whose segment that answered has expired since.
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
        " (kafka-get-offsets --time latest below the old offset). After a reset: stop cleanly, keep a copy, remove this"
        " task directory, start again. If the changelog lost records, this copy is the only complete one: keep it, and"
        " get help before the task moves."
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
