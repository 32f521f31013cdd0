"""Detector `setup`: what it dates and names."""

from __future__ import annotations

from dataclasses import replace

from agent.judging.base import TaskCase
from agent.layout.profile import Profile
from tests.support.scenario_case import at, case, judge

ID = "setup"


def dossier(**versions: float) -> TaskCase:
    """Two disagreements; OPTIONS files written at these times."""
    one = case(release="3.9.2")
    assert one.application is not None
    one.application.rocksdb_versions = {name: at(x) for name, x in versions.items()}
    return replace(one, profile=Profile(conflicts=("first", "second")))


def test_first_disagreement_is_the_headline():
    """All are in the chain, the first is in the summary."""
    verdict = judge(ID, dossier(a=5, b=9))[0]
    assert verdict.summary == "app: first."
    assert [step.what for step in verdict.evidence] == ["first", "second"]


def test_dated_to_the_newest_options_file():
    """Without one, to the first sight of the application."""
    assert judge(ID, dossier(a=5, b=9))[0].opened_at_us == at(9)
    assert judge(ID, dossier())[0].opened_at_us == at(0)
