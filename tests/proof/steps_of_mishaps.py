"""What goes wrong with a task: it is killed, fenced, or corrupted; 2.6 to 4.4."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proof.disk import OPENED, emptied, is_trusted, let_go, marked_corrupted, shut, would_lose
from tests.proof.eras import Era
from tests.proof.life import (
    ABORTED,
    COMMITTED,
    EXPOSED,
    NOBODY,
    OPEN,
    RESTORING,
    RUNNING,
    UNSENT,
    Life,
    Move,
    of,
    resolved,
    told,
    unsent,
)


def is_killed(era: Era, life: Life, _: int) -> Iterator[Move]:
    """SIGKILL, of a frozen process, too. The coordinator aborts what was sent; what was not sent never comes there."""
    if life.role == NOBODY:
        return
    dead = let_go(life)._replace(alive=False)
    kinds = [ABORTED, UNSENT] if era.eos else [COMMITTED, UNSENT]
    if era.eos and era.transactional:
        kinds.append(COMMITTED)  # the transaction was, the store was not
    for kind in kinds if of(life, OPEN) else [COMMITTED]:
        after = resolved(dead, kind, marker=era.eos and kind != UNSENT)
        if (era.eos and is_trusted(era, after)) or would_lose(era, after):
            after = told(after, EXPOSED)
        name = "SIGKILL" if not of(life, OPEN) else f"SIGKILL; its records: {kind}"
        yield Move(name, (("kill",),), after)
        if era.eos and kind == ABORTED:
            yield Move(f"frozen, {name}", (("long",), ("kill",)), after)


def is_lost(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.handleLostAll, closeTaskDirty (3.8.0, 4.3.1): fenced; under exactly-once the directory is deleted.

    StateManagerUtil.closeStateManager (4.4.0): not that of transactional stores, whose buffer is gone. The coordinator
    aborts the transaction of a process that is frozen for two minutes. What its producer had not sent is dropped.
    """
    if life.role != RUNNING or not era.eos:
        return
    for kind in (ABORTED, UNSENT) if of(life, OPEN) else (ABORTED,):
        ended = unsent(life) if kind == UNSENT else resolved(life, ABORTED, marker=True)
        closed, after = shut(era, ended)
        killed = told(after, EXPOSED) if is_trusted(era, after) else after
        fenced = "fenced" if kind == ABORTED else "fenced, its transaction unsent"
        for name, seen in {
            fenced: closed,
            **({f"frozen, {fenced}": (("long",), *closed)} if of(life, OPEN) else {}),
        }.items():
            if era.transactional or era.old:  # closed dirty, and wiped when it is assigned again (2.5.1)
                yield Move(f"{name}, closed", seen, after)
                continue
            yield Move(f"{name}, wiped", (*seen, ("rm",)), emptied(after, directory=False))
            yield Move(f"{name}, killed before the wipe", (*seen, ("kill",)), killed._replace(alive=False))


def is_corrupted(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.closeDirtyAndRevive (3.8.0): a commit timed out; the task is suspended, closed dirty, created again.

    With the state updater its changelogs are not marked before postCommit(true): the present offset is written. Before
    that the other tasks of the thread are committed, and with them its transaction, unless that times out, too.
    4.4.0: they are marked, and the offset is deleted; a transaction's buffer is committed with that.
    RecordCollectorImpl.recordSendError (2.8.0 to 3.9.0): so is a task whose records were not sent in time; its offset
    is what was acknowledged.
    """
    if life.role != RUNNING or not era.eos or era.old:
        return
    for kind in (ABORTED, COMMITTED, *((UNSENT,) if era.unsent_corrupts and of(life, OPEN) else ())):
        after = unsent(life) if kind == UNSENT else resolved(life, kind, marker=True)
        recorded = after.position if era.stale_recorder else None
        seen, after = marked_corrupted(era, after)
        closed, after = shut(era, after)
        wiped = emptied(after, directory=True)._replace(role=RESTORING, recorded=recorded)
        yield Move(f"corrupted, its transaction {kind}, wiped", (*seen, *closed, ("rm",), OPENED), wiped)
        killed = told(after, EXPOSED) if is_trusted(era, after) else after
        words = (*seen, *closed, ("kill",))
        yield Move(
            f"corrupted, its transaction {kind}, killed before the wipe", words, killed._replace(alive=False)
        )
