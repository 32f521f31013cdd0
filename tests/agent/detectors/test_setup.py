"""Detector `setup`: two processes on one directory (KAFKA-6647), a wrong release (KIP-1035), a volume that goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Affected, Level, Status
from agent.inventory.disk import ProcessFact
from agent.inventory.model import Application, ProcessLife
from agent.judging.base import TaskCase
from agent.layout.profile import Evidence, Profile, infer
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, judge
from tests.support.scenario_script import play
from tests.support.tables import NOTED, QUIET, REMARKED, SUSPECTED, WARNED, heard, said, table

ID = "setup"


def works(release: str = "3.9.2", told: str | None = None, **more) -> Scenario:
    """The operator says `told`, the process is of `release`."""
    run = Scenario(release, told={"kafka_streams_version": told or release}, **more)
    return play(run, "start, opens, 1 s, puts 100, flushes, 15 s")


# -- two processes ----------------------------------------------------------------------------------------------


def test_lock_file_replaced_under_its_holder():
    """A lock file that is removed and recreated while it is held lets a second process in."""
    run = works()
    with run.unheard():
        run.world.play("unlink", "app/.lock")
        run.world.lock("app/.lock")
    run.wait(65)
    assert heard(ID, run) == SUSPECTED
    assert run.only(ID).level is Level.DAMAGE


def test_visible_processes_of_two_applications(monkeypatch: pytest.MonkeyPatch):
    """A neighbour in the same state directory is nobody's second process; it clears when no process is left."""
    run = Scenario("3.9.2")
    mine, other = frozenset({"app"}), frozenset({"other"})
    facts = (ProcessFact(1, at(0), "3.9.2", mine), ProcessFact(2, at(1), "3.9.2", other))
    monkeypatch.setattr(run.world.disk, "processes", lambda: facts)
    play(run, "start, opens")
    run.application = "other"
    run.tasks.clear()
    play(run, "start, opens, 30 s")
    assert run.findings(ID) == []
    monkeypatch.setattr(run.world.disk, "processes", lambda: (*facts, ProcessFact(3, at(2), "3.9.2", mine)))
    run.wait(70)
    finding = run.only(ID)
    assert (finding.application_id, finding.mechanism, finding.status) == ("app", "shared-state", Status.OPEN)
    monkeypatch.setattr(run.world.disk, "processes", lambda: ())
    run.wait(200)
    assert run.only(ID).status is Status.RESOLVED


# -- disk and configured release disagree -----------------------------------------------------------------------


@table(ID, "told, release, expected", {
    "told 3.9, and 4.3 writes": ("3.9.2", "4.3.1", SUSPECTED),
    "told 4.2, and 4.3 writes": ("4.2.1", "4.3.0", SUSPECTED),
    "told 3.9, and 2.8 writes": ("3.9.2", "2.8.2", SUSPECTED),
    **{f"told {x}, and it writes": (x, x, QUIET)
       for x in ("2.0.1", "2.3.1", "2.6.2", "2.8.2", "3.4.1", "3.9.2", "4.1.2", "4.3.1")},
    "users replace the library: 3.9's RocksDB": ("4.1.2", "3.9.2", QUIET),
})  # fmt: skip
def test_disk_and_the_operators_word(told, release, expected):
    """Options written after the process began, and a layout that the release does not have: a warning."""
    run = works(release, told)
    assert heard(ID, run) == expected
    for finding in run.findings(ID):
        assert (finding.level, finding.status, finding.task_id) == (Level.EXPOSURE, Status.OPEN, None)
        assert told in finding.summary


def test_upgrade_in_place():
    """N16, N17: an upgrade leaves traces of the old release behind; told the new one, nothing disagrees."""
    run = Scenario("2.8.2", told={"kafka_streams_version": "3.9.2"})
    play(run, "start, opens, 1 s, stops 10, 5 s, start 3.9.2, opens, 15 s")
    assert [x for x in run.findings(ID) if x.status is Status.OPEN] == []


def downgraded(old: str = "4.3.1", new: str = "4.2.1", **more) -> Scenario:
    """A store that the old release wrote and closed; the operator says the new one already."""
    run = Scenario(old, told={"kafka_streams_version": new}, **more)
    return play(run, "start, opens, 1 s, puts 100, stops 99, 15 s")


def fails_to_open(run: Scenario, times: int = 3) -> None:
    """Each start of the older release renames LOG, takes the lock, and gives up: `Column families not opened`."""
    path = run.task("0_0").databases["s", ""].path
    for _ in range(times):
        run.start("4.2.1")
        run.world.play("rename", f"{path}/LOG", to=f"{path}/LOG.old.{run.world.now_us}")
        run.world.play("create", f"{path}/LOG")
        run.world.play("open_w", f"{path}/LOG")
        run.world.lock(f"{path}/LOCK")
        run.wait(0.01)
        run.world.unlock(f"{path}/LOCK")
        play(run, "ends, 4 s")


def test_downgrade_that_cannot_open_its_stores():
    """Seen live: 4.2.1 fails at every start on stores of 4.3.1; a gate before the start says so in time."""
    run = downgraded()
    wrong, unopenable = run.findings(ID)
    assert (wrong.status, unopenable.status) == (Status.RESOLVED, Status.OPEN)
    fails_to_open(run)
    finding = run.findings(ID)[-1]
    assert (finding.id, finding.status, heard(ID, run)[-1:]) == (unopenable.id, Status.OPEN, SUSPECTED)
    assert "4.2.1 cannot open them: it fails at every start" in finding.summary
    assert "go back to 4.3 or later: nothing is lost" in finding.next_action
    assert {x.detector for x in run.loud()} == {ID}


@pytest.mark.parametrize(
    ("old", "new"), [("4.3.1", "4.3.0"), ("4.2.1", "4.0.0"), ("4.1.2", "3.9.2"), ("3.9.2", "3.7.2")]
)
def test_quiet_for_a_downgrade_with_the_same_layout(old, new):
    """What the newer release left the older one opens."""
    run = play(downgraded(old, new), f"start {new}, opens, 15 s, stops 99, 15 s")
    assert run.findings(ID) == []


def dossier(
    *,
    written: float | None = 20,
    started: float | None = 10,
    conflicts: tuple[str, ...] = ("a means b",),
    release: str | None = "4.2.1",
    families: float = 0,
    jar: str | None = None,
) -> TaskCase:
    """Conflicts; options written at 20 s by a process that began at 10 s; the offsets family, if any, at `families`."""
    app = Application("app", exists=True, first_seen_us=at(1))
    app.lives += () if started is None else (ProcessLife(at(started)),)
    app.process_version = jar
    if written is not None:
        app.rocksdb_versions = {"9.7.2": at(written - 5), "9.7.3": at(written)}
    profile = Profile(conflicts=conflicts)
    if families:
        app.offsets_family_us = at(families)
        profile = infer(Evidence(operator=release, offsets_family=True, process_version=jar))
    return replace(case(application=app, release=release), profile=profile)


@table(ID, "more, expected", {
    "the process that lives wrote it": ({}, SUSPECTED),
    "older files may be those of the release before": ({"written": 10}, REMARKED),
    "no process lives": ({"started": None}, REMARKED),
    "nothing says when": ({"written": None}, REMARKED),
    "no conflict": ({"conflicts": ()}, QUIET),
    "traces that disagree among themselves, nothing told": ({"release": None}, QUIET),
    "stores of 4.3, and the jar of 4.2 is in sight": ({"started": 30, "families": 20, "jar": "4.2.1"}, WARNED),
    "stores of 4.3, and nobody is in sight": ({"started": 30, "families": 20}, SUSPECTED),
    "a vendor's number is no release": ({"started": 30, "families": 20, "jar": "8.2.1-ccs"}, SUSPECTED),
})  # fmt: skip
def test_what_this_process_wrote(more, expected):
    assert said(ID, dossier(**more)) == expected


def test_what_a_verdict_on_the_release_carries():
    """The first disagreement is the headline, all are in the chain; dated to the newest options, or the first look."""
    (verdict,) = judge(ID, dossier(conflicts=("first", "second")))
    assert (verdict.summary, verdict.opened_at_us, verdict.affected) == (
        "app: first.",
        at(20),
        Affected.POSSIBLY,
    )
    assert [(step.what, step.at_us) for step in verdict.evidence] == [("first", at(20)), ("second", at(20))]
    (unknown,) = judge(ID, dossier(written=None))
    assert unknown.opened_at_us == unknown.evidence[0].at_us == at(1)
    (writes,) = judge(ID, dossier(families=20))  # it is of 4.3 or later, and the setting is wrong
    assert "means 4.3.0 or later" in writes.summary


# -- the volume -------------------------------------------------------------------------------------------------


@table(ID, "volume, exists, expected", {
    "in memory": ("memory", True, WARNED),
    "a container's own layer": ("overlay", True, NOTED),
    "a local disk": ("local", True, QUIET),
    "a network file system": ("network", True, QUIET),
    "not known": ("", True, QUIET),
    "an empty directory is nobody's state": ("memory", False, QUIET),
})  # fmt: skip
def test_kind_of_the_volume(volume, exists, expected):
    one = case()
    one.inventory.volume, one.application.exists = volume, exists
    assert said(ID, one) == expected
    assert {(x.affected, x.opened_at_us) for x in judge(ID, one)} <= {(Affected.NO, at(0))}
