"""What a step says, and what a script may make of it, are the same."""

from __future__ import annotations

import re

import pytest

from agent.contract.units import Remedy
from agent.detectors import DETECTORS
from agent.judging.base import DetectorMeta
from tests.support.scenario import IN_MEMORY, KEY_VALUE, UNLOGGED, Scenario
from tests.support.scenario_script import play

REMOVES = re.compile(r"[Rr]emove (this|that) (task )?directory|remove it, start", re.ASCII)
CHECKS = (
    "check whether",
    "Check for",
    "First check",
    "Compare",
    "Usually nothing",
    "If the application deletes keys",
    "Start once",
    "Find out",
)


@pytest.mark.parametrize("meta", [x.meta for x in DETECTORS], ids=lambda x: x.id)
def test_a_step_that_removes_a_directory_says_so_to_scripts(meta: DetectorMeta) -> None:
    """Who adds a detector whose step removes something declares it; one that removes nothing is never scripted."""
    says = REMOVES.search(meta.next_action) is not None or "remove that task directory" in meta.next_action
    assert says is (meta.remedy is not Remedy.OTHER)


@pytest.mark.parametrize("meta", [x.meta for x in DETECTORS], ids=lambda x: x.id)
def test_a_step_with_a_check_is_not_scripted_without_it(meta: DetectorMeta) -> None:
    """A condition in the text is a condition of the script."""
    if meta.remedy is Remedy.RESTORE:
        assert not any(word in meta.next_action for word in CHECKS)
    elif meta.remedy in (Remedy.CHECK_FIRST, Remedy.KEEP):
        assert any(word in meta.next_action for word in CHECKS)


@pytest.mark.parametrize(("kind", "named"), [(UNLOGGED, True), (KEY_VALUE, False), (IN_MEMORY, False)])
def test_a_step_that_removes_a_directory_names_what_has_no_changelog(kind: str, named: bool) -> None:
    """The other stores of the task are restored; of this one only the copy is left."""
    run = Scenario("4.1.2", "exactly_once_v2", stores={"s": KEY_VALUE, "u": kind})
    play(run, "start, opens, restores 999 puts=1000, 30 s, puts 500, flushes, 5 s, crash, 100 s")
    finding = run.only("stale-eos-checkpoint")
    assert finding.remedy is Remedy.RESTORE
    assert ("Keep a copy first: u may have no changelog" in finding.next_action) is named


@pytest.mark.parametrize(
    ("release", "detector", "ends"),
    [
        ("4.1.2", "stale-eos-checkpoint", "flushes, 5 s, crash"),
        ("4.3.1", "false-clean-store", "closes_dirty, crash"),
    ],
)
def test_a_step_names_what_has_no_changelog_any_more(release: str, detector: str, ends: str) -> None:
    """A deploy switched its logging off: what an older checkpoint, or the store, says of it holds no longer."""
    run = Scenario(release, "exactly_once_v2", stores={"s": KEY_VALUE, "u": KEY_VALUE})
    play(run, "start, opens, restores 999 puts=1000, 30 s, stops 999, 5 s")
    run.stores["u"] = UNLOGGED
    play(run, "start, opens, restores 999 puts=0, puts 500, stops 1499, 5 s")
    play(run, f"start, opens, restores 1499 puts=0, checkpoints 1499, 30 s, puts 500, {ends}, 100 s")
    finding = run.only(detector)
    assert "Keep a copy first: u may have no changelog" in finding.next_action
    assert finding.store in (None, "s")
