"""Detector `carried-checkpoint`: a half-restored store trusted by an older owner's checkpoint (KAFKA-8574)."""

from __future__ import annotations

from typing import Any

from agent.contract.events import Affected
from tests.support.scenario import KEY_VALUE, Scenario
from tests.support.scenario_case import (
    OTHER,
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    past,
    session,
    store,
    task,
)
from tests.support.scenario_script import life, play
from tests.support.twins import cases, said_of

ID = "carried-checkpoint"


def half_restored(
    release: str = "2.1.1", guarantee: str = "exactly_once", *, puts: int = 1200, own: str = "", **more: Any
) -> Scenario:
    """Owner A checkpoints 3000 and lets go; B, constructed before, wipes under the lock and restores `puts`.

    B writes its `own` checkpoint, or none. C reads A's, deletes it before it has the lock, and opens without a wipe.
    """
    run = Scenario(release, guarantee, **more)
    play(run, "start, constructs, opens, restores 0 puts=0, 1 s, puts 3000, flushes, 1 s, closes 3000, locks")
    run.app._open_store(run.task("0_0"), "s", KEY_VALUE)  # B read no checkpoint: A had not written one
    play(run, f"wipes, 1 s, begins_restoring, puts {puts}, flushes, 5 s, closes {own}, 20 s")
    assert run.findings(ID) == []
    return play(run, "start, opens, 1 s")


IN_FULL = "restored in full: its puts come with the offset"
OWN = "it was let go with a checkpoint of its own"
COMPACTED = "its live entries came back from a compacted changelog"
YOUNGER = "the checkpoint is younger than the wipe"
WIPED = "the next owner wiped it again"
NONE = "no offset was trusted"


@cases(
    ID,
    ("2.0.1", life("", half_restored, "2.0.1"), "critical confirmed"),
    ("2.1.1", life("30 s", half_restored), "critical confirmed"),
    (
        "guarantee not told",
        life("", half_restored, hidden=("processing_guarantee",)),
        "warning suspected without processing_guarantee",
    ),
    (
        "the third owner wipes",
        life("wipes, restores 3000, 30 s", half_restored),
        "critical confirmed resolved",
    ),
    ("the second owner finished (recorded)", life("30 s", half_restored, puts=3000), f"silent: {IN_FULL}"),
    ("the second owner wrote a checkpoint", life("30 s", half_restored, own="1200"), f"silent: {OWN}"),
    ("at-least-once does not wipe", life("30 s", half_restored, "2.1.1", "at_least_once"), "silent"),
)
def test_lives(story, said):
    """A wipe under the lock, a restoration cut short, and an opening at the old offset: the rest is missing."""
    assert said_of(ID, story) == said


def dossier(
    *,
    restored: int = 1200,
    offset: int | None = 3000,
    written: float = 5,
    held: int | None = 3000,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Wiped with `held` live entries at 10 s, let go at 20 s with `restored` puts, opened at 30 s at `offset`."""
    middle = session(0, 20, puts=restored, **{"wiped": True, **(before or {})})
    last = session(30, offset_at_open=offset, **(after or {}))
    one = store([database(puts=restored, born=10, **(files or {}))], [middle, last])
    one.past += (past(10, puts=3000, entries_low=held),)
    facts = [checkpoint(written, 3000, ended=29, deleted=True)]
    return case(task(one, checkpoints=facts), **{"release": "2.1.1", "guarantee": "exactly_once", **settings})


def no_files() -> Any:
    """The database is gone."""
    one = dossier()
    one.task.stores["s"].databases.clear()
    return one


def twice() -> Any:
    """A session in order stands before the pair; a second such pair is the same damage."""
    one = dossier()
    held = one.task.stores["s"]
    held.sessions = (session(-9, -1), *held.sessions, session(40, 50, puts=500, offset_at_open=3000))
    return one


@cases(
    ID,
    ("less than 0.8 puts per offset", dossier(restored=2399), "critical confirmed"),
    ("0.8 puts per offset", dossier(restored=2400), f"silent: {IN_FULL}"),
    ("less than 0.8 of what it held live", dossier(restored=799, held=1000), "critical confirmed"),
    ("0.8 of what it held live", dossier(restored=800, held=1000), f"silent: {COMPACTED}"),
    ("what it held live is not known", dossier(restored=799, held=None), "warning suspected"),
    ("offset 0", dossier(offset=0), f"silent: {NONE}"),
    ("the unknown offset", dossier(offset=-4), f"silent: {NONE}"),
    ("no offset", dossier(offset=None), f"silent: {NONE}"),
    ("checkpoint before the wipe", dossier(written=9.9), "critical confirmed"),
    ("checkpoint at the wipe", dossier(written=10), f"silent: {YOUNGER}"),
    ("the middle owner did not wipe", dossier(before={"wiped": False}), "silent"),
    ("the last owner wiped", dossier(after={"wiped": True}), f"silent: {WIPED}"),
    ("the middle owner wrote", dossier(before={"last": mark(15, 1200, 1200)}), f"silent: {OWN}"),
    ("read under the lock from 2.6 on", dossier(release="2.6.0"), "silent"),
    ("at-least-once", dossier(guarantee="at_least_once"), "silent"),
    ("another incarnation was opened", dossier(after={"identities": OTHER}), "silent"),
    ("2.3 writes at suspension", dossier(release="2.3.1"), "warning suspected"),
    ("other sessions hide nothing", twice(), "critical confirmed"),
    ("no database", no_files(), "silent"),
    (
        "a manifest that nobody may read",
        dossier(files={"manifest_problem": "denied"}),
        "silent: its puts are not known",
    ),
    ("no checkpoint before the opening", dossier(written=31), "silent: the checkpoint is not known"),
)
def test_looks(story, said):
    """Each condition, one step to either side."""
    assert said_of(ID, story) == said


def test_chain():
    """Old checkpoint, wipe, release, reopening, each at its own time."""
    (verdict,) = judge(ID, dossier())
    assert [step.at_us for step in verdict.evidence] == [at(5), at(10), at(20), at(30)]
    assert (verdict.subject, verdict.opened_at_us) == ("identity-1", at(30))
    assert judge(ID, dossier(release="2.3.1"))[0].affected is Affected.NO
