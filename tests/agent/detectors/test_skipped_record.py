"""Detector `skipped-record`: after an upgrade from 2.5 a copy goes on one record too far (D4)."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Level, Status
from agent.inventory.model import Application
from agent.judging.base import TaskCase
from tests.support.scenario import KEY_VALUE, TIMESTAMPED, WINDOWED, Scenario
from tests.support.scenario_case import (
    PLAIN,
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    session,
    store,
    task,
)
from tests.support.scenario_case import TIMESTAMPED as TWO
from tests.support.scenario_script import play
from tests.support.tables import QUIET, SUSPECTED, heard, said, table

ID = "skipped-record"
ALOS = "at_least_once"


def copied(new: str = "2.8.2", old: str = "2.5.1", *, kind: str = KEY_VALUE, **told: Any) -> Scenario:
    """A copy that the older release opens; the operator says the newer one already."""
    run = Scenario(old, ALOS, stores={"s": kind}, told={"kafka_streams_version": new, **told})
    return play(run, "start, opens, 1 s")


HOLDS = "puts 3000, checkpoints 3000, 5 s"
STOPS = f"{HOLDS}, stops 3000, 10 s"
READS = "puts 100, 1 s, checkpoints 3100, 15 s"
"""Another pod wrote records 3,000 to 3,100 meanwhile: all but the first of them are put."""
NEXT = "start 2.8.2, 1 s, opens, 20 s"
ALL_READ = "puts 3101, 1 s, checkpoints 3100, 15 s"
EOS = {"processing_guarantee": "exactly_once"}


@pytest.mark.parametrize("new", ["2.6.2", "2.8.2", "3.6.2", "4.2.1"])
@pytest.mark.parametrize("old", ["2.0.1", "2.3.1", "2.5.1"])
def test_a_copy_that_is_behind_skips_a_record(old, new):
    """It is said with the first checkpoint that shows more than the old one."""
    run = play(copied(new, old), f"{STOPS}, start {new}, 1 s, opens, 20 s")
    assert run.findings(ID) == []
    finding = play(run, READS).only(ID)
    assert heard(ID, run) == SUSPECTED
    assert (finding.level, finding.status, finding.affected) == (Level.DAMAGE, Status.OPEN, Affected.YES)
    assert "100 puts for 101 records" in finding.summary
    assert finding.store == "s"


@table(ID, "more, script, expected", {
    "a timestamped store": ({"kind": TIMESTAMPED}, f"{STOPS}, {NEXT}, {READS}", SUSPECTED),
    "a windowed store": ({"kind": WINDOWED}, f"{STOPS}, {NEXT}, {READS}", SUSPECTED),
    "a killed copy": ({}, f"{HOLDS}, crash, 10 s, {NEXT}, {READS}", SUSPECTED),
    # up to 2.5 the offset of nothing is 0, which 2.6 takes for the first record
    "an empty copy skips the first record of all": (
        {}, f"checkpoints 0, 5 s, stops 0, 10 s, {NEXT}, puts 50, 1 s, checkpoints 50, 15 s", SUSPECTED),
    "the offset was the end: the task writes that record": (
        {}, f"{STOPS}, {NEXT}, puts 101, 1 s, checkpoints 3100, 15 s", "a record was put for each offset"),
    "a kill left more on disk: the record is there": (
        {}, f"{HOLDS}, puts 10, flushes, 5 s, crash, 10 s, {NEXT}, {READS}",
        "the copy had flushed more than its checkpoint covers, and has the record"),
    "mitigation: the copy was removed before the upgrade": (
        {}, f"{STOPS}, deletes_directory, {NEXT}, {ALL_READ}", QUIET),
    "out of range: everything is replayed over the old files": (
        {}, f"{STOPS}, {NEXT}, delete .checkpoint, closes_dirty, 0.5 s, opens, puts 3201, 1 s, checkpoints 3200, 15 s",
        QUIET),
    "up to 2.5": ({"new": "2.5.1", "old": "2.3.1"}, f"{STOPS}, start 2.5.1, 1 s, opens, 20 s, {READS}", QUIET),
    "from 2.6": ({"old": "2.6.2"}, f"{STOPS}, {NEXT}, {READS}", QUIET),
    "from 2.8": ({"new": "3.9.2", "old": "2.8.2"}, f"{STOPS}, start 3.9.2, 1 s, opens, 20 s, {READS}", QUIET),
    "a transaction's marker is at that offset": (EOS, f"{STOPS}, {NEXT}, {READS}", QUIET),
    "the guarantee is not known": ({"processing_guarantee": None}, f"{STOPS}, {NEXT}, {READS}", QUIET),
})  # fmt: skip
def test_upgrades(more, script, expected):
    run = copied(**more)
    before, unlinks, behind = script.partition("delete .checkpoint, ")
    play(run, before)
    if unlinks:
        run.world.play("unlink", "app/0_0/.checkpoint")
    assert heard(ID, play(run, behind)) == expected


@table(ID, "then, expected", {
    "the copy is removed": ("deletes_directory, 30 s", Status.RESOLVED),
    "a restart goes on from the right offset, and the record is missing": (
        f"{NEXT}, puts 10, 1 s, checkpoints 3110, 30 s", Status.OPEN),
})  # fmt: skip
def test_it_clears_with_the_copy(then, expected):
    run = play(copied(), f"{STOPS}, {NEXT}, {READS}, stops 3100, 5 s, {then}")
    assert run.only(ID).status is expected


# -- the edges ------------------------------------------------------------------------------------------------


def dossier(
    *,
    offset: int | None = 3000,
    last: int = 3100,
    puts: int = 3100,
    covered: int = 3000,
    written: float = 5,
    release: str | None = "2.8.2",
    guarantee: str | None = ALOS,
    version: str = "5.18.3",
    families: tuple[str, ...] = PLAIN,
    used: tuple[str, ...] = (),
    unsure: tuple[bool, bool] = (False, False),
    earlier: bool = False,
    flushed: tuple[tuple[int, float], ...] = (),
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> TaskCase:
    """Held from 0 to 20 s by what wrote its options at `written`, opened again at 30 s.

    `earlier`: the offset of its end was read after it; `unsure`: the counts of the first, and of the second session.
    """
    ended = mark(10, 2000, 2000) if earlier else mark(18, 3000, covered)
    now = mark(40, last, puts)
    ended.unsure, now.unsure = unsure
    held = session(0, 20, puts=3000, last=ended)
    opened = session(30, offset_at_open=offset, puts_at_open=3000, last=now)
    one = database(puts=puts, families=families, flushed=flushed)
    one.families_in_use = used
    for each, changes in ((held, before), (opened, after)):
        for name, value in (changes or {}).items():
            setattr(each, name, value)
    application = Application("app", exists=True, first_seen_us=at(0))
    application.rocksdb_versions = {version: at(written), "5.18.4": at(31)}
    facts = [checkpoint(19, 3000)] if earlier else []
    judged = task(store([one], [held, opened]), checkpoints=facts)
    return case(judged, release=release, guarantee=guarantee, application=application)


WHICH = "which release held it before, if an earlier one did"
NEW = "the opening made the store, or wiped it"
OTHER = frozenset({"identity-2"})


@table(ID, "more, expected", {
    "one put less than offsets": ({}, SUSPECTED),
    "as many": ({"puts": 3101}, "a record was put for each offset"),
    "two less": ({"puts": 3099}, "a record was put for each offset"),
    "it moved by one": ({"last": 3001, "puts": 3001}, SUSPECTED),
    "it did not move": ({"last": 3000, "puts": 3000}, "how far the copy has come since"),
    "no offset in force": ({"offset": None}, QUIET),
    "an unknown offset in force": ({"offset": -4}, QUIET),
    "another offset in force": ({"offset": 2999}, QUIET),
    "opened with more than was flushed with the offset": ({"covered": 2990}, QUIET),
    "its options were written before that session": ({"written": -2}, WHICH),
    "its options were written after the next one began": ({"written": 30}, WHICH),
    "its options were written later": ({"written": 35}, WHICH),
    "a RocksDB of 2.6 too": ({"version": "5.18.4"}, WHICH),
    "a RocksDB that Kafka does not ship": ({"version": "5.17.2"}, WHICH),
    "a RocksDB of 3.2": ({"version": "6.29.4"}, WHICH),
    "2.5 runs": ({"release": "2.5.1"}, QUIET),
    "the release is not known": ({"release": None}, QUIET),
    "exactly-once": ({"guarantee": "exactly_once"}, QUIET),
    "the guarantee is not known": ({"guarantee": None}, QUIET),
    "a timestamped store in use": ({"families": TWO, "used": TWO[1:]}, SUSPECTED),
    "one that converts its values": ({"families": TWO, "used": TWO}, "how often this store puts a record"),
    "made by the opening": ({"after": {"created": True}}, NEW),
    "wiped by the opening": ({"after": {"wiped": True}}, NEW),
    "another store was there": (
        {"before": {"identities": OTHER, "final_identities": OTHER}}, "another incarnation of the store was there"),
    "the count at the checkpoint is not sure": (
        {"unsure": (False, True), "after": {"first": None}}, "how far the copy has come since"),
    "the count of the old offset is not sure": (
        {"unsure": (True, False)}, "what was flushed when the old offset was written"),
    # what the last session wrote at its end was read after it: it counts if as much was flushed by then
    "an agent that was away knows no flush": ({"earlier": True}, QUIET),
    "an agent that was away goes by the checkpoint": (
        {"earlier": True, "flushed": ((3000, 18), (3100, 39))}, SUSPECTED),
})  # fmt: skip
def test_limits(more, expected):
    assert said(ID, dossier(**more)) == expected


def test_chain_of_the_verdict():
    """Released, opened by the newer release, and the checkpoint that shows it; the opening is the event."""
    (verdict,) = judge(ID, dossier())
    assert [step.at_us for step in verdict.evidence] == [at(20), at(30), at(40)]
    assert (verdict.opened_at_us, verdict.store, verdict.identity) == (at(30), "s", "identity-1")
    assert "checkpoint with offset 3100" in verdict.evidence[2].what
