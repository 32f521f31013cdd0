"""Detector `torn-store`: files of a store that are damaged, and all that only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.contract.events import Affected, Severity, Status
from agent.inventory.disk import LockState
from agent.judging.base import TaskCase
from tests.agent.detectors.test_torn_store import ID, STORE, two_files
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, database, judge, store, task
from tests.support.scenario_script import play
from tests.support.tables import QUIET, SUSPECTED, WARNED, heard, said, table

BLIND = "auditor-blind"
HELD_STORE = "app/0_0/rocksdb/s"
Damage = Callable[[Scenario, str], None]


def named(run: Scenario, word: str, place: str) -> str:
    """Path of the last file of a store with this word in its name."""
    return f"{place}/{max(name for name, _ in run.world.children(place) if word in name)}"


def content(run: Scenario, path: str) -> bytes:
    found = run.world.disk.read_at(path, 0, 1 << 24)
    assert isinstance(found, bytes)
    return found


def rewritten(word: str, change: Callable[[bytes], bytes]) -> Damage:
    """The last such file of a store has another content now."""

    def damage(run: Scenario, place: str = STORE) -> None:
        path = named(run, word, place)
        run.world.replace(path, change(content(run, path)), f"{place}/temporary")

    return damage


def flipped(data: bytes, at_byte: int) -> bytes:
    return data[:at_byte] + bytes([data[at_byte] ^ 1]) + data[at_byte + 1 :]


REFUSED: dict[str, Damage] = {
    "sst of 0 bytes": rewritten(".sst", lambda data: b""),
    "sst cut": rewritten(".sst", lambda data: data[:-5]),
    "sst without footer": rewritten(".sst", lambda data: data[:-53] + bytes(53)),
    "sst with a flipped bit in its properties": rewritten(".sst", lambda data: flipped(data, len(data) - 90)),
    "empty CURRENT": rewritten("CURRENT", lambda data: b""),
    "no manifest": lambda run, place: run.world.play("unlink", named(run, "MANIFEST", place)),
    "empty manifest": rewritten("MANIFEST", lambda data: b""),
    "manifest without its first edit": rewritten("MANIFEST", lambda data: data[:20]),
    "manifest with a flipped bit": rewritten("MANIFEST", lambda data: flipped(data, len(data) // 2)),
}
# a record that is cut off may be what a crash of the node left: RocksDB opens it
DAMAGES = {**REFUSED, "cut manifest": rewritten("MANIFEST", lambda data: data[:-3])}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_reported_as_damaged(damage, release):
    """What RocksDB refuses is damage, confirmed at the second look, and the agent says that it is blind there."""
    run = two_files(release)
    DAMAGES[damage](run, STORE)
    run.wait(130)
    finding = run.only(ID)
    assert heard(ID, run) == (WARNED if damage in REFUSED else SUSPECTED)
    assert (finding.task_id, finding.store, finding.status) == ("0_1", "s", Status.OPEN)
    assert (finding.upstream, finding.affected) == ((), Affected.NO)
    assert ("is damaged" in finding.summary, "opens it without" in finding.summary) == (
        True,
        damage not in REFUSED,
    )
    assert finding.mechanism == ("damaged-files" if damage in REFUSED else "offset-without-data")
    if damage in REFUSED:
        blind = run.only(BLIND)
        assert blind.summary.startswith("Can't read app/0_1/rocksdb/s: store s: ")
        assert blind.evidence[0].what == "blind: store-damaged"
    assert {x.detector for x in run.loud()} == {ID, BLIND}


@pytest.mark.parametrize("damage", REFUSED)
def test_reported_by_an_agent_that_comes_later(damage):
    """Who never saw the store whole says the same, and never that nothing was written to it."""
    run = two_files()
    REFUSED[damage](run, STORE)
    run.world = run.world.attached_at(len(run.world.operations))
    run.wait(70)
    assert heard(ID, run) == WARNED
    assert run.only(BLIND).evidence[0].what == "blind: store-damaged"


@pytest.mark.parametrize("end", ["the copy is back", "the directory is removed"])
def test_ends(end):
    """When the volume has come to itself, or by the mitigation, both findings end."""
    run = two_files()
    whole = content(run, named(run, "MANIFEST", STORE))
    REFUSED["manifest with a flipped bit"](run, STORE)
    run.wait(130)
    assert run.only(ID).status is Status.OPEN
    if end == "the copy is back":
        rewritten("MANIFEST", lambda data: whole)(run, STORE)
    else:
        run.app.deletes_directory("0_1")
    run.wait(400)
    assert run.only(ID).status is run.only(BLIND).status is Status.RESOLVED


@pytest.mark.parametrize("damage", ["sst of 0 bytes", "sst without footer", "manifest with a flipped bit"])
def test_held_store_is_suspected_after_a_minute(damage):
    """What a process works on may be shown late by the volume; after a minute it is not."""
    run = play(two_files(), "puts 5, flushes, 5 s")
    REFUSED[damage](run, HELD_STORE)
    run.wait(50)
    assert run.findings(ID) == []
    run.wait(90)
    assert heard(ID, run) == SUSPECTED
    assert "stop this instance first" in run.only(ID).next_action


# -- what only looks like it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("place", [STORE, HELD_STORE], ids=["free", "held"])
def test_passing(damage, place):
    """What is whole again within seconds was a writer at work, or a volume that shows it late."""
    run = two_files()
    before = {path: content(run, path) for path in run.everything(place)}
    damage(run, place)
    run.wait(3)
    for path, data in before.items():
        if not run.world.has(path) or content(run, path) != data:
            run.world.replace(path, data, f"{place}/temporary")
    run.wait(400)
    assert (run.findings(ID), run.findings(BLIND)) == ([], [])


# -- the exact condition ---------------------------------------------------------------------------------------

SHORT = "000007.sst: corrupt: file is too short"
HELD, UNKNOWN = LockState.HELD, LockState.UNKNOWN
LATE = "a process is at it, and a volume may show late what it writes"
COPIED = "a copy of it is being made"
ONCE = "no two readings five seconds apart found it"


def damaged(
    *problems: str,
    since: float = 90,
    seen: float = 95,
    lock: LockState | None = LockState.FREE,
    segments: tuple[str | None, ...] = (None,),
    **fields: Any,
) -> TaskCase:
    """A store whose problems were first found at `since` and last at `seen`, in each of its segments."""
    parts = [database(puts=5, lock=lock, segment=x, **fields) for x in segments]
    for one in parts:
        one.problems, one.seen_us = problems, at(seen)
        one.problem_since_us = dict.fromkeys(problems, at(since))
    return case(task(store(parts, segmented=segments != (None,))))


@table(ID, "one, expected", {
    "two readings five seconds apart": (damaged(SHORT), WARNED),
    "two in a row": (damaged(SHORT, seen=94.9), ONCE),
    "one look": (damaged(SHORT, since=90, seen=90), ONCE),
    "held for less than a minute": (damaged(SHORT, since=41, lock=HELD), LATE),
    "held for a minute": (damaged(SHORT, since=40, lock=HELD), SUSPECTED),
    "nobody can be asked": (damaged(SHORT, since=41, lock=UNKNOWN), LATE),
    "nobody can be asked for a minute": (damaged(SHORT, since=40, lock=UNKNOWN), SUSPECTED),
    # seen to come, a file at a time
    "a copy gets its files": (damaged(SHORT, heard=True, found_us=at(5), touched_us=at(41)), COPIED),
    "a copy that has got none for a minute": (damaged(SHORT, heard=True, found_us=at(5), touched_us=at(40)), WARNED),
    "it was there at the first look": (damaged(SHORT, found_us=at(5), touched_us=at(41)), WARNED),
    "it is older than it was seen": (damaged(SHORT, heard=True, found_us=at(99), touched_us=at(39)), WARNED),
    "two segments are two findings": (damaged(SHORT, segments=("w.0", "w.60000")), WARNED * 2),
    # only what a start finds damaged is told as damage
    "a block that the agent cannot read": (damaged("000007.sst: unsupported: compressed block (kind 7)"), QUIET),
    "a file that it may not read": (damaged("000007.sst: denied"), QUIET),
    "a file that just went": (damaged("000007.sst: vanished"), QUIET),
    "a long manifest": (damaged("MANIFEST-000005: too-large: more than one reading takes in, the rest follows"), QUIET),
    "a value of a later release": (damaged("offsets: unsupported: entry status: 5 bytes instead of 8"), QUIET),
})  # fmt: skip
def test_limits(one, expected):
    assert said(ID, one) == expected
    assert len({x.subject for x in judge(ID, one)}) == len(expected)


def test_files_elsewhere_are_a_remark():
    """They are no damage."""
    one = damaged("000007.sst: elsewhere: it is on another path of the database (db_paths, cf_paths)")
    assert [x.severity for x in judge(ID, one)] == [Severity.INFO]


def test_says_how_many():
    """The first one is named, the others are counted; the opening is when it was first found."""
    (verdict,) = judge(ID, damaged(SHORT, "CURRENT: corrupt: it names no manifest", since=80))
    assert "000007.sst: corrupt: file is too short and 1 more" in verdict.summary
    assert verdict.opened_at_us == at(80)
