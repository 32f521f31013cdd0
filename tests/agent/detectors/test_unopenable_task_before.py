"""A store that says open while nobody holds it: what is said before the start."""

from __future__ import annotations

from dataclasses import replace

from agent.contract.events import Affected
from agent.inventory.disk import LockState
from agent.inventory.model import Database
from agent.inventory.observations import StoreOffsets
from agent.judging.base import TaskCase
from agent.layout.profile import Truth
from tests.support.scenario_case import at, case, database, judge, store, task
from tests.support.tables import NOTED, QUIET, WARNED, said, table

ID = "unopenable-task"
FREE, GLOBAL = LockState.FREE, {"task_id": "global", "release": "4.3.1"}


def database_left_open(
    segment: str | None, status: int | None, lock: LockState | None, since: float
) -> Database:
    """A database with this status; its lock is free since then, and it was read at 60 s."""
    files = database(segment=segment, identity=f"id-{segment}", lock=lock)
    files.offsets = StoreOffsets(status=status, status_sequence=7)
    files.lock_since_us, files.seen_us = at(since) if since else 0, at(60)
    return files


def left_open(
    status: int | None = 1,
    lock: LockState | None = FREE,
    *,
    since: float = 50,
    release: str = "4.4.0",
    transactional: bool = False,
    task_id: str = "0_0",
    **settings,
) -> TaskCase:
    """A store left so; `transactional`: the operator says that stores are."""
    told = {"enable_transactional_statestores": "true"} if transactional else None
    judged = task(store([database_left_open(None, status, lock, since)]), task_id=task_id)
    one = case(judged, release=release, told=told, **settings)
    return replace(one, profile=replace(one.profile, transactional=Truth.YES)) if transactional else one


@table(ID, "more, missing, says, expected", {
    # both must be known: the status, and that nobody holds it
    "open, and free": ({}, "enable_transactional_statestores", "enable.transactional.statestores every start", NOTED),
    "closed": ({"status": 0}, "", "", QUIET),
    "no status": ({"status": None}, "", "", QUIET),
    "held": ({"lock": LockState.HELD}, "", "", QUIET),
    "who holds it is not known": ({"lock": LockState.UNKNOWN}, "", "", QUIET),
    "no lock was read": ({"lock": None}, "", "", QUIET),
    "transactional stores": ({"transactional": True}, "", "transactional stores refuse it", WARNED),
    "transactional, the guarantee is asked for": (
        {"transactional": True, "guarantee": None}, "processing_guarantee", "under exactly-once", NOTED),
    "4.2 wipes it": ({"release": "4.2.1"}, "", "", QUIET),
    "4.3 wipes it": ({"release": "4.3.1"}, "", "", "without transactional stores the next start wipes the store"),
    "KAFKA-21034: a global store is never wiped": (GLOBAL, "", "the application fails at every start", NOTED),
    "a global store, the guarantee is not known": (
        {**GLOBAL, "guarantee": None}, "", "under exactly-once the application fails", NOTED),
    "a global store under at-least-once": ({**GLOBAL, "guarantee": "at_least_once"}, "", "", QUIET),
})  # fmt: skip
def test_open_and_free(more, missing, says, expected):
    one = left_open(**more)
    assert said(ID, one) == expected
    for verdict in judge(ID, one):
        assert verdict.missing_facts == ((missing,) if missing else ())
        assert says in verdict.summary
        if one.task.is_global:
            assert verdict.affected is Affected.YES
            assert "remove that directory only" in verdict.next_action
