"""Detector `frozen-checkpoint`: at-least-once, data is flushed and the checkpoint does not move."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Level
from agent.inventory.blindness import note_blind
from tests.support.scenario import TIMESTAMPED, Scenario
from tests.support.scenario_case import PLAIN, at, case, database, judge, mark, session, store, task
from tests.support.scenario_script import life, play
from tests.support.twins import cases, said_of

ID = "frozen-checkpoint"
FEW = "at most 10,000 records were flushed since"
RESTORES = "no checkpoint in this session yet: a long restoration"
EARLY = "fewer than five commits were missed"


def flushed(
    release: str = "3.9.2", guarantee: str = "at_least_once", *, puts: int = 50_000, **more: Any
) -> Scenario:
    """A task whose checkpoint was up to date, and so many puts that were flushed since."""
    run = Scenario(release, guarantee, told={"commit_interval_ms": 1000}, stores={"s": TIMESTAMPED}, **more)
    return play(run, f"start, opens, 1 s, puts 1000, checkpoints 999, 2 s, puts {puts}, flushes")


@pytest.mark.parametrize("release", ["2.8.2", "3.9.2", "4.2.1"])
def test_more_than_ten_thousand_puts(release):
    """10,001 flushed puts and five commit intervals without a checkpoint are a warning; a checkpoint clears it."""
    run = play(flushed(release, puts=10_001), "4 s")
    assert run.findings(ID) == []
    run.wait(8)
    assert said_of(ID, run) == "warning confirmed"
    finding = run.only(ID)
    assert (finding.level, finding.affected) == (Level.EXPOSURE, Affected.NO)
    assert "10001 puts" in finding.summary
    assert said_of(ID, play(run, "checkpoints 11000, 2 s")) == "warning confirmed resolved"


@cases(
    ID,
    ("10,000 puts", life("300 s", flushed, puts=10_000), f"silent: {FEW}"),
    ("compacted files carry no new puts", life("compacts, 300 s", flushed, puts=9000), "silent"),
    # KAFKA-12634: up to 3.4 a restoration writes no checkpoint, however long it is
    (
        "a long restoration",
        life(
            "start, opens, puts 100000, flushes, 300 s", Scenario, "2.8.2", told={"commit_interval_ms": 1000}
        ),
        f"silent: {RESTORES}",
    ),
    ("exactly-once writes none while it runs", life("300 s", flushed, "3.9.2", "exactly_once_v2"), "silent"),
    ("guarantee not told", life("300 s", flushed, hidden=("processing_guarantee",)), "silent"),
    ("4.3 has no checkpoint", life("300 s", flushed, "4.3.1"), "silent"),
    ("nobody holds the store", life("crash, 300 s", flushed), "silent"),
)
def test_lives(story, said):
    """What looks like it, and is none."""
    assert said_of(ID, story) == said


def dossier(
    *,
    puts: int = 11_001,
    flushes: tuple[tuple[int, float], ...] = (),
    flushed: float = 20,
    now: float = 100,
    commit: int | None = 2000,
    released: float | None = None,
    marked: bool = True,
    families: tuple[str, ...] | None = None,
    set_forward: bool = False,
    **settings: Any,
) -> Any:
    """Checkpoint at 10 s with 1,000 puts; `puts` on disk at `flushed`."""
    one = session(0, released, first=mark(10, 999, 1000) if marked else None)
    files = database(puts=puts, flushed=flushes or [(1000, 9), (puts, flushed)])
    files.families = families or files.families
    told = {} if commit is None else {"commit_interval_ms": commit}
    known = {"release": "3.9.2", "guarantee": "at_least_once", "standbys": 0, **settings}
    made = case(task(store([files], [one])), now=now, told=told, **known)
    if set_forward:
        note_blind(made.inventory, at(24), at(3624), "clock-step")
    return made


CROSSED_AT_90 = ((1000, 9), (10_000, 20), (11_001, 90))


@cases(
    ID,
    ("10,000 puts since", dossier(puts=11_000), f"silent: {FEW}"),
    ("10,001 puts since", dossier(), "warning confirmed"),
    ("30,100 of a store that may put thrice", dossier(puts=31_100, families=PLAIN), f"silent: {FEW}"),
    ("30,101 of a store that may put thrice", dossier(puts=31_101, families=PLAIN), "warning confirmed"),
    ("five intervals", dossier(now=30), f"silent: {EARLY}"),
    ("more than five", dossier(now=30.1), "warning confirmed"),
    ("five by default", dossier(commit=None, now=170), f"silent: {EARLY}"),
    ("more than five by default", dossier(commit=None, now=170.1), "warning suspected"),
    ("clock set forward by an hour", dossier(flushed=22, now=3632, set_forward=True), f"silent: {EARLY}"),
    ("and five missed since", dossier(flushed=22, now=3632.1, set_forward=True), "warning confirmed"),
    ("an old flush below the limit", dossier(flushes=CROSSED_AT_90), f"silent: {EARLY}"),
    ("released", dossier(released=50), "silent"),
    ("no checkpoint in the session", dossier(marked=False), f"silent: {RESTORES}"),
    ("a flush at the checkpoint", dossier(flushed=10), f"silent: {FEW}"),
    ("3.4, standbys not told", dossier(release="3.4.1", standbys=None), "warning suspected"),
    ("3.4, a standby that became active", dossier(release="3.4.1", standbys=1), "info suspected"),
    ("3.7, standbys not told", dossier(release="3.7.2", standbys=None), "warning suspected"),
    ("3.7, a standby that became active", dossier(release="3.7.2", standbys=1), "info suspected"),
    ("3.7, no standbys", dossier(release="3.7.2"), "warning confirmed"),
    ("3.8 writes on the way", dossier(release="3.8.0", standbys=1), "warning confirmed"),
    ("3.4, no standbys", dossier(release="3.4.1"), "warning confirmed"),
    ("3.9 writes on the way, standbys or not", dossier(standbys=1), "warning confirmed"),
    ("4.3 keeps offsets in the store", dossier(release="4.3.1"), "silent"),
    ("release not told", dossier(release=None), "warning confirmed"),
)
def test_looks(story, said):
    """More than 10,000 records, more than five commit intervals, in a session with a checkpoint."""
    assert said_of(ID, story) == said


@pytest.mark.parametrize(
    ("one", "opened"),
    [
        (dossier(), 20),
        (dossier(flushed=10.1), 10.1),
        (dossier(flushes=CROSSED_AT_90, now=100.1), 90),
    ],
)
def test_opened_at_the_flush_that_crossed_the_limit(one, opened):
    """The last checkpoint, then the flush that it does not cover."""
    (verdict,) = judge(ID, one)
    assert verdict.opened_at_us == at(opened)
    assert [step.at_us for step in verdict.evidence] == [at(10), at(opened), at(opened)]
