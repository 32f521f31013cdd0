"""Up to 2.5: how a task is assigned (single stores are wiped, and a restoration reopens its store), and standbys."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proof.disk import emptied, has_database, has_offset
from tests.proof.eras import Era
from tests.proof.life import RESTORING, RUNNING, STANDBY, Life, Move, Word, end, trusted


def is_assigned_up_to_2_5(era: Era, life: Life) -> Iterator[Move]:
    """ProcessorStateManager and StandbyTask.initializeStateStores, StoreChangelogReader.initialize (2.5.0, 2.5.1).

    The constructor deletes the checkpoint under exactly-once. A store without an entry is wiped, an active one only
    where its changelog has an end. A restoration reopens the store (RocksDBStore.toggleDbForBulkLoading); where there
    is nothing to restore the task runs.
    """
    opened: Word = ("open", era.deleted_at_init and life.checkpoint is not None)
    known = life.checkpoint if life.checkpoint is not None and life.checkpoint >= 0 else -1
    made = life._replace(directory=True, store=True, position=known)
    made = made._replace(checkpoint=None) if era.deleted_at_init else made
    if life.store:
        yield Move("assigned, killed at once", (opened, ("kill",)), made._replace(alive=False, position=-1))
    for role in (RESTORING, STANDBY):
        seen: tuple[Word, ...] = (opened,)
        after = made._replace(role=role)
        wipes = era.wiped_standby if role == STANDBY else era.wiped_without_offset and end(life.log) >= 0
        if wipes and not has_offset(era, life):
            seen, after = (*seen, ("wipe",)), emptied(after, directory=True)
        after = trusted(after, eos=era.eos)
        if role == STANDBY:
            again = after.position if era.reads_again else -1
            yield Move("assigned as a standby", seen, after._replace(opened=again))
        elif end(life.log) > known:
            yield Move("assigned", (*seen, ("reopen", 0)) if has_database(era, after) else seen, after)
        else:
            yield Move("assigned, runs", seen, after._replace(role=RUNNING))


def reads_again(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StandbyTask.checkpointedOffsets, TaskManager.assignStandbyPartitions (2.4.1): a rebalance seeks to the beginning.

    ProcessorStateManager.standbyRestoredOffsets says what was read before until a record is applied again.
    """
    if era.reads_again and life.role == STANDBY and life.position > life.opened:
        again = life._replace(position=life.opened, recorded=life.position, snapshot=max(life.opened, 0))
        yield Move("a rebalance: reads again", (), again)
