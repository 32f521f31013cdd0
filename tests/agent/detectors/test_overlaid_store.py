"""Detector `overlaid-store`: the changelog replayed over old files (N22, D3, D4)."""

from __future__ import annotations

from typing import Any

from agent.contract.events import Level
from tests.support.scenario import Scenario
from tests.support.scenario_case import OTHER, at, case, checkpoint, database, judge, session, store, task
from tests.support.scenario_script import life, play
from tests.support.twins import cases, said_of

ID = "overlaid-store"
INFO, WARNING = "info confirmed", "warning suspected"
FILLED = "start, opens, 1 s, puts 3000"


def without_offset(
    release: str = "3.9.2", *, idle: float = 5, offset: int | None = None, **more: Any
) -> Scenario:
    """A store with 3,000 puts is opened again `idle` seconds later; its entry is gone, or `offset`."""
    run = play(Scenario(release, **more), f"{FILLED}, checkpoints 2999, 1 s")
    if offset is None:
        run.world.play("unlink", "app/0_0/.checkpoint")
    else:
        run.app.checkpoints("0_0", offset)
    return play(run, f"1 s, crash, {idle} s, start, 1 s, opens, restores 3000 puts=3000")


MINUTE = {"delete_retention_ms": 60_000}
CONTINUES = "silent: it continues from its offset"


@cases(
    ID,
    # known at a checkpoint, which the end of a restoration writes from 3.5 on, or after ten seconds
    ("2.6, not yet", life("5 s", without_offset, "2.6.2"), "silent"),
    ("2.6", life("15 s", without_offset, "2.6.2"), f"{INFO} resolved"),
    ("3.4, not yet", life("5 s", without_offset, "3.4.1", offset=-4), "silent"),
    ("3.4, the unknown offset", life("15 s", without_offset, "3.4.1", offset=-4), f"{INFO} resolved"),
    ("3.9, at the end of the restoration", life("5 s", without_offset), f"{INFO} resolved"),
    ("4.2, the unknown offset", life("5 s", without_offset, "4.2.1", offset=-4), f"{INFO} resolved"),
    ("tombstones have expired", life("20 s", without_offset, idle=90, told=MINUTE), f"{WARNING} resolved"),
    ("tombstones still live", life("20 s", without_offset, idle=30, told=MINUTE), f"{INFO} resolved"),
    ("an ordinary restart", life("30 s", without_offset, offset=2999), CONTINUES),
    ("wiped", life(f"{FILLED}, flushes, 1 s, wipes, 30 s", Scenario, "3.9.2", "exactly_once_v2"), "silent"),
)
def test_lives(story, said):
    """No offset in force over files with data: after more downtime than tombstones live, deleted keys may be back."""
    assert said_of(ID, story) == said


def test_finding():
    """What it names."""
    finding = life("15 s", without_offset)().only(ID)
    assert finding.level is Level.EXPOSURE
    assert "3000 puts" in finding.summary


def dossier(
    *,
    idle: float = 10,
    puts: int = 3000,
    now: float = 100,
    retention: int | None = 10_000,
    named: str = "s",
    identity: str = "identity-1",
    again: bool = False,
    release: str | None = "3.9.2",
    **after: Any,
) -> Any:
    """Released at 20 s with `puts`, opened `idle` seconds later; `again`: and once more at 55 s."""
    sessions = [session(0, 20, puts=puts), session(20 + idle, **after)]
    if again:
        sessions = [sessions[0], session(20 + idle, 50, puts=3500), session(55)]
    told = {} if retention is None else {"delete_retention_ms": retention}
    facts = [] if named == "s" else [checkpoint(15, 3000, name=named)]
    one = task(store([database(puts=puts, identity=identity)], sessions), checkpoints=facts)
    return case(one, release=release, told=told, now=now)


ANEW = "silent: its session made it anew"


@cases(
    ID,
    ("unused for the retention", dossier(idle=10), INFO),
    ("for longer", dossier(idle=10.1), WARNING),
    ("retention not told", dossier(idle=10.1, retention=None), INFO),
    ("not settled", dossier(now=39.9), "silent"),
    ("settled", dossier(now=40), INFO),
    ("empty", dossier(puts=0), "silent: nothing was in it"),
    ("one put", dossier(puts=1), INFO),
    ("offset 0", dossier(offset_at_open=0), CONTINUES),
    ("the unknown offset", dossier(offset_at_open=-4), INFO),
    ("made by this session", dossier(created=True), ANEW),
    ("wiped by this session", dossier(wiped=True), "silent"),
    (
        "checkpoints name another store, and not this one",
        dossier(named="other"),
        "silent: no changelog of its own: checkpoints never name it",
    ),
    ("another incarnation was opened", dossier(identities=OTHER), "silent"),
    ("another incarnation is there", dossier(identity="identity-2"), "silent"),
    ("the store may hold its own offset", dossier(release=None), "silent"),
    ("4.3, the store holds its own offset", dossier(release="4.3.1"), "silent"),
    ("a crash loop", dossier(again=True), f"{INFO}, {INFO}"),
)
def test_looks(story, said):
    """Files of before, still there, and no offset in force."""
    assert said_of(ID, story) == said


def test_chain_of_the_verdict():
    """Released with its puts, opened again without an offset; each opening is an event."""
    first, second = judge(ID, dossier(again=True))
    assert [step.at_us for step in first.evidence] == [at(20), at(30)]
    assert [step.at_us for step in second.evidence] == [at(50), at(55)]
    assert "3000 puts" in first.evidence[0].what
    assert ["10 s later" in first.evidence[1].what, "5.0 s later" in second.evidence[1].what] == [True, True]
    assert [x.opened_at_us for x in (first, second)] == [at(30), at(55)]
    assert (first.store, first.identity) == ("s", "identity-1")
