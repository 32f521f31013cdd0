"""What a rule says of a story: innocent, unknown, unproved or a verdict; which verdicts a docket keeps."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import ApplicationSettings, Setting
from agent.judging.base import DetectorMeta, Evidence, TaskCase
from agent.judging.rule import (
    Docket,
    Loudness,
    Proof,
    Rule,
    Silence,
    TaskStory,
    Why,
    derived,
    detector,
    everything,
)

LOUD = {"i": Severity.INFO, "w": Severity.WARNING, "c": Severity.CRITICAL}


class Told(TaskStory):
    """A story by its letters: key, then severity, `h`armless, `u`nknown or `n`othing."""

    words: str
    subject = derived(lambda x: x.words)


def _loudness(x: Told, proof: Proof | None) -> Loudness | None:
    if proof is None:
        return None
    return Loudness(LOUD[x.words[1]], Confidence.CONFIRMED if proof.certain else Confidence.SUSPECTED)


RULE: Rule[Told] = Rule(
    "what is told",
    innocents={"harmless": lambda x: "h" in x.words},
    unknowns={"not known": lambda x: "u" in x.words},
    proofs=(
        lambda x: Proof("surely") if x.words.endswith("!") else None,
        lambda x: Proof("likely", certain=False) if set(x.words[1:]) & set(LOUD) else None,
    ),
    loudness=_loudness,
    summary=lambda x, proof: f"{x.words}: {proof and proof.why}",
    evidence=lambda x, _: [Evidence(1, x.words, x.place)],
)
META = DetectorMeta("told", "Told", "Nothing.", exactly_once=True)


def case(guarantee: str = "exactly_once_v2") -> TaskCase:
    """A task about which nothing is known but its guarantee."""
    settings = ApplicationSettings({"processing_guarantee": Setting(guarantee, "test")})
    return TaskCase(Inventory(), 5, Application("app"), Task("app", "0_0", "app/0_0"), settings=settings)


def docket(*words: str, keep=everything, rules=(RULE,)) -> Docket[Told]:
    """A docket of told stories."""
    return Docket(lambda case: (Told(case, x) for x in words), rules, keep)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("ah", Silence(Why.INNOCENT, "harmless")),
        ("auh", Silence(Why.INNOCENT, "harmless")),  # what is harmless need not be known
        ("au", Silence(Why.UNKNOWN, "not known")),
        ("an", Silence(Why.UNPROVED, "nothing proves it")),
    ],
)
def test_why_it_is_silent(words, said):
    """The first reason, by its name."""
    assert RULE.decide(Told(case(), words)) == said


def test_the_first_rule_that_speaks_is_heard():
    """A rule that is silent leaves a story to the next; `decisions` has what each says."""
    deaf: Rule[Told] = Rule(
        "deaf", innocents={"all": lambda x: True}, summary=RULE.summary, evidence=RULE.evidence
    )
    one = docket("ac", rules=(deaf, RULE, RULE))
    assert [x.subject for x in detector(META, one).judge(case())] == ["ac"]
    assert [rule.name for _, rule, _ in one.decisions(case())] == ["deaf", "what is told", "what is told"]


def test_metadata_says_where_it_is_silent():
    """Under the other guarantee no story is listed."""
    told = detector(META, docket("ac"))
    assert list(told.judge(case("at_least_once"))) == []
    assert len(list(told.judge(case()))) == 1
