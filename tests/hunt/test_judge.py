"""The judge: words against truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from tests.hunt.design import Run, Step
from tests.hunt.judge import Health, Truth, is_allowed, judge, verdict
from tests.hunt.truth import Difference
from tests.live.judge import Said
from tests.live.plan import ALOS, EOS

LOST = Difference("window", 0, 60, 0, 60)
TWICE = Difference("kv", 0, 0, 10, 60)
KILL = (Step("records"), Step("kill"), Step("check"))


def run(release: str = "4.3.1", guarantee: str = ALOS) -> Run:
    return Run(1, release, guarantee, ("kv", "window"), steps=KILL)


def said(
    detector: str, severity: str = "warning", task: str = "0_0", agent: str = "a-told", at_us: int = 50
) -> Said:
    return Said(agent, detector, task, "-", severity, "suspected", "yes", "summary", "a is killed", at_us)


def kinds(
    of: Run,
    truths: Sequence[Truth] = (),
    words: Sequence[Said] = (),
    healths: Sequence[Health] = (),
    marks: Sequence[tuple[int, str]] = (),
) -> list[str]:
    judged = judge(of, truths, words, healths, marks)
    return sorted(one.kind for one in judged)


def true(difference: Difference, task: str = "0_0", allowed: bool = False) -> Truth:
    return Truth(60, task, difference, allowed)


def test_silence_about_what_is_right_is_right():
    assert kinds(run()) == []
    assert kinds(run(), words=[said("startup-pass", "info")]) == []


def test_silence_about_a_loss_is_a_miss():
    assert kinds(run(), [true(LOST)]) == ["miss"]
    assert kinds(run(), [true(LOST)], [said("lost-segment", "info")]) == ["miss"]


def test_a_word_about_another_task_or_of_the_untold_agent_alone_does_not_do():
    assert kinds(run(), [true(LOST)], [said("lost-segment", "critical", "0_1")]) == ["false_alarm", "miss"]
    assert kinds(run(), [true(LOST)], [said("lost-segment", "critical", agent="a-untold")]) == [
        "excused",
        "miss",
    ]


def test_the_right_word_is_right():
    assert kinds(run(), [true(LOST)], [said("lost-segment", "critical")]) == ["excused"]
    assert kinds(run("4.2.1", EOS), [true(TWICE)], [said("skipped-eos-wipe", "critical")]) == ["excused"]


def test_a_word_that_does_not_explain_it_is_the_wrong_reason():
    judged = kinds(run("4.2.1", EOS), [true(LOST)], [said("stale-eos-checkpoint")])
    assert judged == ["excused", "wrong_reason"]


def test_a_changelog_is_not_truncated_without_a_cut():
    """Found by the hunt: on 4.3.1 it was said of a store that had lost a segment."""
    word = said("changelog-truncated", "critical")
    cut = dataclasses.replace(run(), steps=(*KILL, Step("delete-records", {"store": "window"})))
    assert kinds(run(), [true(LOST)], [word]) == ["false_alarm", "wrong_reason"]
    assert kinds(cut, [true(LOST)], [word]) == ["excused"]


def test_a_silence_that_a_page_announces_is_no_miss():
    reset = Step("reset", {"cleanup": False})
    of = dataclasses.replace(run(), steps=(*KILL, reset))
    assert kinds(of, [true(TWICE)]) == ["blind_spot"]
    assert kinds(of, [true(LOST)]) == ["miss"]
    assert kinds(dataclasses.replace(of, release="3.9.2"), [true(TWICE)]) == ["miss"]
    assert not is_allowed(of, ["kill", "reset"], TWICE)
    assert is_allowed(of, ["reset", "kill"], TWICE)


def test_a_difference_that_the_guarantee_allows_need_not_be_said():
    assert kinds(run(), [true(TWICE, allowed=True)]) == []
    assert is_allowed(run(), ["kill"], TWICE)
    assert not is_allowed(run(), ["kill"], LOST)
    assert not is_allowed(run(), ["close"], TWICE)
    assert not is_allowed(run(guarantee=EOS), ["kill"], TWICE)


@pytest.mark.parametrize(
    ("release", "detector", "severity", "marks", "kind"),
    [
        ("4.2.1", "stale-eos-checkpoint", "warning", (), "excused"),
        ("4.3.1", "stale-eos-checkpoint", "warning", (), "false_alarm"),
        ("4.2.1", "skipped-eos-wipe", "warning", (), "false_alarm"),
        ("4.2.1", "skipped-eos-wipe", "warning", ((40, "a is killed"),), "excused"),
        ("4.2.1", "skipped-eos-wipe", "critical", ((40, "a is killed"),), "false_alarm"),
        ("4.3.1", "premature-cleanup", "warning", (), "excused"),
        ("4.2.1", "premature-cleanup", "warning", (), "false_alarm"),
        ("4.3.1", "interrupted-wipe", "warning", ((40, "a is killed"),), "false_alarm"),
        ("4.3.1", "auditor-blind", "warning", (), "blind"),
    ],
)  # fmt: skip
def test_a_warning_while_all_is_right(release, detector, severity, marks, kind):
    assert kinds(run(release, EOS), words=[said(detector, severity)], marks=marks) == [kind]


def test_an_agent_that_is_not_well():
    assert kinds(run(), healths=[Health("a-told", 0, 40.0)]) == []
    assert kinds(run(), healths=[Health("a-told", 1, 40.0)]) == ["crash"]
    assert kinds(run(), healths=[Health("a-told", 0, 40.0, ("Traceback",))]) == ["crash"]
    assert kinds(run(), healths=[Health("a-told", None, 400.0)]) == ["crash", "growth"]


def test_what_is_excused_does_not_count():
    assert verdict(judge(run(), [true(LOST)], [said("lost-segment", "critical")], [], [])) == {}
    assert verdict(judge(run(), [true(LOST)], [], [], [])) == {"miss": 1}
