"""The judge: words against truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from tests.lab.design import Run, Step
from tests.lab.judge import Health, Truth, is_allowed, judge, verdict
from tests.lab.plan import ALOS, EOS
from tests.lab.said import Said
from tests.lab.timeline import Asked
from tests.lab.truth import Difference

LOST = Difference("window", 0, 60, 0, 60)
TWICE = Difference("kv", 0, 0, 10, 60)
KILL = (Step("records"), Step("kill"), Step("check"))
S = 1_000_000
KILLED = ((10, "a starts 4.2.1"), (40, "a is killed"))


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
    asked: Sequence[Asked] = (),
) -> list[str]:
    judged = judge(of, truths, words, healths, marks, asked)
    return sorted(one.kind for one in judged)


def true(difference: Difference, task: str = "0_0", allowed: bool = False, pod: str = "") -> Truth:
    return Truth(60, task, difference, allowed, pod)


def look(*pods: str, at_us: int = 60, store: str = "window") -> Asked:
    """A look that has asked the copies of task 0_0 of these pods."""
    return Asked(at_us, frozenset((pod, "0_0", store) for pod in pods))


def test_silence_about_what_is_right_is_right():
    assert kinds(run()) == []
    for word in (said("lost-segment", "info"), said("undecided", "warning")):  # a question is no alarm
        assert kinds(run(), words=[word]) == []


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
    assert kinds(run(), [true(LOST)], [word]) == ["false_alarm", "wrong_reason"]
    cut = ((30, "step delete-records store=window"), (31, "half of the changelog of window is deleted"))
    assert kinds(run(), [true(LOST)], [word], marks=cut) == ["excused"]
    assert kinds(run(), [true(TWICE)], [word], marks=cut) == ["excused", "wrong_reason"]  # true, but not why
    late = ((70, cut[0][1]), (71, cut[1][1]))
    assert kinds(run(), [true(LOST)], [word], marks=late) == ["false_alarm", "wrong_reason"]


def test_a_silence_that_a_page_announces_is_no_miss():
    reset = ((30, "step reset cleanup=False"), (31, "a closes"))
    old, new = ((10, f"a starts {release}") for release in ("3.9.2", "4.3.1"))
    assert kinds(run(), [true(TWICE)], marks=(new, *reset)) == ["blind_spot"]
    assert kinds(run(), [true(LOST)], marks=(new, *reset)) == ["miss"]
    assert kinds(run(), [true(TWICE)], marks=(old, *reset)) == ["miss"]
    assert kinds(run(), [true(TWICE)], marks=(new, (70, reset[0][1]), (71, "a closes"))) == ["miss"]
    assert not is_allowed(run(), [Step("kill"), Step("reset")], TWICE)
    assert is_allowed(run(), [Step("reset"), Step("kill")], TWICE)


def test_what_was_wiped_before_it_wrote_an_offset_is_an_announced_silence():
    """Found by the hunt: exactly-once on 2.0.1, reset without cleanUp(), killed before the first orderly close."""
    begun = (
        (10, "a starts 3.9.2"), (30, "step reset cleanup=False"), (31, "a closes"), (32, "a closed"),
        (33, "the application is reset"), (34, "a starts 3.9.2"),
    )  # fmt: skip
    of = run("3.9.2", EOS)
    assert kinds(of, [true(TWICE)], marks=(*begun, (70, "a is killed"), (90, "a closed"))) == ["blind_spot"]
    assert kinds(of, [true(TWICE)], marks=(*begun, (70, "a closed"), (90, "a is killed"))) == ["miss"]
    assert kinds(of, [true(LOST)], marks=(*begun, (70, "a is killed"))) == ["miss"]
    assert kinds(run("3.9.2"), [true(TWICE)], marks=(*begun, (70, "a is killed"))) == ["miss"]


def test_what_was_not_restored_and_claims_nothing_is_an_announced_silence():
    """Found by the hunt: KAFKA-7672 under exactly-once on 2.0.1, and a kill before the first orderly close."""
    lost = dataclasses.replace(LOST, extra=0)
    begun, killed, closed = (10, "a starts 2.0.1"), (70, "a is killed"), (80, "a closed")
    others = ((81, "b closed"), (82, "c closed"))
    assert kinds(run("2.0.1", EOS), [true(lost)], marks=(begun, killed, closed, *others)) == ["blind_spot"]
    assert kinds(run("2.0.1", EOS), [true(lost)], marks=(begun, closed, *others)) == ["miss"]
    assert kinds(run("2.0.1"), [true(lost)], marks=(begun, killed, closed, *others)) == ["miss"]
    assert kinds(run("2.5.1", EOS), [true(lost)], marks=((10, "a starts 2.5.1"), killed, *others)) == ["miss"]


def test_a_difference_that_the_guarantee_allows_need_not_be_said():
    assert kinds(run(), [true(TWICE, allowed=True)]) == []
    assert is_allowed(run(), [Step("kill")], TWICE)
    assert not is_allowed(run(), [Step("kill")], LOST)
    assert not is_allowed(run(), [Step("close")], TWICE)
    assert not is_allowed(run(guarantee=EOS), [Step("kill")], TWICE)


def test_a_changelog_that_was_cut_allows_a_loss_of_its_store_only():
    cut = [Step("recreate-changelog", {"store": "window"})]
    assert is_allowed(run(), cut, LOST)
    assert is_allowed(run(), cut, dataclasses.replace(LOST, store="window-changelog"))
    assert not is_allowed(run(), cut, dataclasses.replace(LOST, store="kv"))


def test_a_loss_that_the_next_check_did_not_find_does_not_make_a_word_true():
    word = said("lost-segment", "critical", at_us=20)
    assert kinds(run(), [true(LOST)], [word], marks=((60, "truth: window 0: -60"),)) == ["excused"]
    looked = ((30, "truth: right"), (60, "truth: window 0: -60"))
    assert kinds(run(), [true(LOST)], [word], marks=looked) == ["false_alarm"]
    assert kinds(run(), [true(LOST)], [said("torn-store", at_us=20)], marks=looked) == ["excused"]


def test_a_word_about_a_copy_is_compared_with_that_pods_own_copy():
    """Found by the hunt: a standby lost a segment, and the active store was asked."""
    word = said("lost-segment", "critical")
    wrong = true(LOST, pod="a")
    assert kinds(run(), [wrong], [word], asked=[look("a", "b")]) == ["excused"]
    assert kinds(run(), [], [word], asked=[look("a", "b")]) == ["false_alarm"]
    other = dataclasses.replace(wrong, pod="b")
    assert kinds(run(), [other], [word], asked=[look("a", "b")]) == ["false_alarm", "miss"]
    active = true(LOST)
    assert kinds(run(), [active, other], [word], asked=[look("a", "b")]) == ["false_alarm"]
    assert kinds(run(), [active], [word], asked=[look("a", store="kv")]) == [
        "excused"
    ]  # not told apart by pods
    later = [look("a", at_us=55), look("a")]
    assert kinds(run(), [wrong], [word], asked=later) == ["false_alarm"]


def test_a_copy_that_no_one_could_ask_leaves_a_word_undecided():
    word = dataclasses.replace(said("lost-segment", "critical"), store="window")
    for looks in (
        [look("b")],
        [look("a", store="kv")],
        [look("a", at_us=40)],
        [look("b"), look("b", at_us=70)],
    ):
        assert kinds(run(), words=[word], asked=looks) == ["undecided"]
    assert verdict(judge(run(), [], [word], [], [], [look("b")])) == {}
    assert kinds(run(), words=[word], asked=[look("b"), look("a", at_us=70)]) == ["false_alarm"]
    known = dataclasses.replace(word, detector="torn-store", severity="warning", opened_at_us=50 * S)
    killed = [(at_s * S, what) for at_s, what in KILLED]
    assert kinds(run(guarantee=EOS), words=[known], marks=killed, asked=[look("b")]) == ["excused"]
    assert kinds(run(), words=[said("malformed-checkpoint")], asked=[look("b")]) == ["false_alarm"]


def test_a_release_that_cannot_be_asked_for_copies_is_judged_by_its_active_stores():
    word = said("lost-segment", "critical")
    assert kinds(run(), [true(LOST)], [word], asked=[Asked(60, None)]) == ["excused"]
    assert kinds(run(), words=[word], asked=[Asked(60, None)]) == ["false_alarm"]


def test_a_standby_that_is_wrong_without_a_word_of_its_own_pod_is_a_miss():
    wrong = true(LOST, pod="b")
    assert kinds(run(), [wrong], asked=[look("a", "b")]) == ["miss"]
    told = said("lost-segment", agent="b-told")
    assert kinds(run(), [wrong], [told], asked=[look("a", "b")]) == ["excused"]
    assert kinds(run(), [true(LOST), true(LOST, pod="a")], asked=[look("a")]) == ["miss"]
    assert kinds(run(), [true(TWICE, pod="b", allowed=True)], asked=[look("b")]) == []


def excused(detector: str, marks: Sequence[tuple[int, str]], *, of: Run | None = None) -> bool:
    """Tell whether a warning at 50 s, while all is right, is a true one; marks are in seconds."""
    word = said(detector, at_us=50 * S)
    judged = kinds(of or run(guarantee=EOS), words=[word], marks=[(at_s * S, what) for at_s, what in marks])
    assert judged in (["excused"], ["false_alarm"])
    return judged == ["excused"]


@pytest.mark.parametrize(
    ("detector", "marks"),
    [
        ("stale-eos-checkpoint", KILLED[:1]),
        ("stale-eos-checkpoint", ((10, "a starts 4.3.1"), (30, "a starts 4.2.1"))),
        ("skipped-eos-wipe", KILLED),
        ("skipped-eos-wipe", (*KILLED, (45, "a starts 4.2.1"))),
        ("skipped-eos-wipe", ((10, "a starts 4.2.1"), (20, "a poison 1: set"))),
        ("skipped-eos-wipe", ((10, "a starts 4.2.1"), (20, "a is frozen"), (29, "a goes on"))),
        ("skipped-eos-wipe", ((10, "a starts 4.2.1"), (20, "step restart-broker"), (29, "the broker goes on"))),
        ("premature-cleanup", ((10, "a starts 4.3.1"),)),
        ("torn-store", KILLED),
        ("stale-segment-offset", ((10, "a starts 4.3.0"), (40, "a is killed"))),
        ("resurrected-checkpoint", ((45, "step cleanup pod=a killed_after_ms=5"), (46, "a is killed"))),
    ],
)  # fmt: skip
def test_a_warning_that_is_true_of_this_pod_at_this_time(detector, marks):
    assert excused(detector, marks)


@pytest.mark.parametrize(
    ("detector", "marks"),
    [
        ("stale-eos-checkpoint", ((10, "a starts 4.3.1"),)),
        ("stale-eos-checkpoint", ((10, "a starts 4.2.2"),)),
        ("stale-eos-checkpoint", ((10, "a starts 4.2.1"), (30, "a starts 4.3.1"))),
        ("stale-eos-checkpoint", ((10, "a starts 4.3.1"), (10, "b starts 4.2.1"))),
        ("skipped-eos-wipe", KILLED[:1]),
        ("skipped-eos-wipe", ((10, "a starts 4.2.1"), (40, "b is killed"))),
        ("skipped-eos-wipe", ((10, "a starts 4.2.1"), (55, "a is killed"))),
        ("skipped-eos-wipe", (*KILLED, (45, "a starts 4.2.1"), (48, "a closed"))),
        ("skipped-eos-wipe", ((10, "a starts 4.2.1"), (20, "a is frozen"), (22, "a goes on"))),
        ("skipped-eos-wipe", ((10, "a starts 4.2.1"), (20, "step stall for_ms=2000"), (22, "the broker goes on"))),
        ("premature-cleanup", ((10, "a starts 4.2.1"),)),
        ("torn-store", ((10, "a starts 4.2.1"), (40, "b is killed"))),
        ("torn-store", (*KILLED, (45, "a closed"))),
        ("stale-segment-offset", ((10, "a starts 4.3.0"), (30, "a is killed"), (40, "a starts 4.3.1"))),
        ("task-churn", [(at_s, "a starts 4.3.1") for at_s in range(5)]),
        ("resurrected-checkpoint", ((45, "step cleanup pod=a killed_after_ms=0"), (46, "a is killed"))),
        ("interrupted-wipe", KILLED),
    ],
)  # fmt: skip
def test_what_another_pod_did_another_release_ran_or_came_later_excuses_nothing(detector, marks):
    assert not excused(detector, marks)


def test_a_critical_word_has_no_excuse_but_a_fact():
    word = said("skipped-eos-wipe", "critical", at_us=50)
    assert kinds(run("4.2.1", EOS), words=[word], marks=KILLED) == ["false_alarm"]
    clone = ((10, "step clone pod=a other=b"), (11, "a closes"))
    alive = dataclasses.replace(
        said("cloned-process", "critical", agent="rollup-told"), summary="x of a-told"
    )
    assert kinds(run(), words=[alive], marks=clone) == ["excused"]
    other = dataclasses.replace(alive, summary="x of c-told")
    assert kinds(run(), words=[other], marks=clone) == ["false_alarm"]


def test_a_changelog_that_a_step_recreated_is_shorter_whatever_the_store_lost():
    word = dataclasses.replace(said("changelog-truncated", "critical", at_us=50), store="window")
    deed = ((20, "step recreate-changelog store=window"), (21, "a closes"))
    assert kinds(run(), words=[word], marks=deed) == ["excused"]
    assert kinds(run(), words=[dataclasses.replace(word, store="kv")], marks=deed) == ["false_alarm"]
    assert kinds(run(), words=[word], marks=((60, deed[0][1]), (61, "a closes"))) == ["false_alarm"]


def test_a_critical_word_about_the_next_start_is_true_of_a_state_that_was_left_so():
    word = said("stale-eos-checkpoint", "critical", at_us=50)
    copied = ((9, "a starts 4.2.1"), (20, "step snapshot pod=a of=running ends=close"), (21, "a is frozen"))
    for release, marks, kind in (
        ("4.2.1", KILLED, "excused"),
        ("4.2.1", copied, "excused"),
        ("4.2.1", KILLED[:1], "false_alarm"),
        ("4.2.2", ((10, "a starts 4.2.2"), (40, "a is killed")), "false_alarm"),
    ):
        assert kinds(run(release, EOS), words=[word], marks=marks) == [kind]


@pytest.mark.parametrize(
    ("release", "standbys", "is_one"), [("2.5.0", 1, True), ("2.5.0", 0, False), ("2.5.1", 1, False)]
)
def test_up_to_2_5_0_a_standby_is_not_wiped(release, standbys, is_one):
    of = dataclasses.replace(run(release, EOS), settings={"num.standby.replicas": standbys})
    assert excused("skipped-eos-wipe", ((10, f"a starts {release}"), (40, "a is killed")), of=of) is is_one


@pytest.mark.parametrize(
    ("release", "standbys", "is_one"), [("2.0.1", 1, True), ("2.0.1", 0, False), ("2.5.1", 1, False)]
)
def test_up_to_2_2_1_a_standby_is_lost(release, standbys, is_one):
    of = dataclasses.replace(run(release), settings={"num.standby.replicas": standbys})
    assert excused("missing-standby", ((10, f"a starts {release}"),), of=of) is is_one


def test_a_cleaner_is_not_early_before_the_delay_has_passed_since_the_first_start():
    of = dataclasses.replace(run(guarantee=EOS), settings={"state.cleanup.delay.ms": 45_000})
    assert not excused("premature-cleanup", ((10, "a starts 4.3.1"),), of=of)
    assert excused("premature-cleanup", ((4, "a starts 4.3.1"),), of=of)


def test_the_rollup_is_as_right_as_the_agent_whose_word_it_repeats():
    rolled = dataclasses.replace(
        said("stale-eos-state", agent="rollup-told"), summary="stale-eos-state of a-told"
    )
    source = said("skipped-eos-wipe", "info")
    assert kinds(run("4.2.1", EOS), words=[rolled, source], marks=KILLED) == ["excused"]
    assert kinds(run("4.2.1", EOS), words=[rolled, source], marks=KILLED[:1]) == ["false_alarm"]
    elsewhere = dataclasses.replace(source, agent="b-told")
    assert kinds(run("4.2.1", EOS), words=[rolled, elsewhere], marks=KILLED) == ["false_alarm"]
    assert kinds(run("4.2.1", EOS), words=[rolled], marks=KILLED) == ["false_alarm"]


def test_a_rule_that_repeats_a_word_about_a_copy_is_judged_as_that():
    """By the first look after the agent's word; what the rollup says is dated at the end of the run."""
    word = said("unrestored-store", "critical", at_us=50)
    repeated = dataclasses.replace(
        said("unrestored-task", "critical", agent="rollup-told", at_us=99),
        summary="unrestored-task of a-told",
    )
    looks = [look("a", at_us=60), look("a", at_us=80)]
    assert kinds(run(), [true(LOST, pod="a")], [word, repeated], asked=looks) == ["excused", "excused"]
    assert kinds(run(), [], [word, repeated], asked=looks) == ["false_alarm", "false_alarm"]
    assert kinds(run(), [], [word, repeated], asked=[look("b")]) == ["undecided", "undecided"]
    of_another = dataclasses.replace(repeated, summary="unrestored-task of b-told")
    assert kinds(run(), [], [word, of_another], asked=looks) == ["false_alarm", "undecided"]


def blindness(cause: str, agent: str = "a-told", at_s: int = 50) -> Said:
    word = said("auditor-blind", task="-", agent=agent, at_us=at_s * S)
    return dataclasses.replace(word, summary=f"Changes of all may have been missed for 5 s ({cause}): why.")


def test_blindness_is_excused_for_the_cause_that_a_step_gave_to_this_pods_agents():
    away = ((30 * S, "step restart-agents pod=a"), (31 * S, "kill of the agents of a"))
    assert kinds(run(), words=[blindness("agent-away")], marks=away) == ["excused"]
    assert kinds(run(), words=[blindness("missed")], marks=away) == ["blind"]
    assert kinds(run(), words=[blindness("agent-away", "b-told")], marks=away) == ["blind"]
    assert kinds(run(), words=[blindness("agent-away", at_s=20)], marks=away) == ["blind"]
    assert kinds(run(), words=[blindness("agent-away")], marks=(away[0], (31 * S, "step check"))) == ["blind"]


def test_a_word_of_an_agent_whose_clock_was_set_is_put_at_its_true_time():
    marks = (
        (5 * S, "a starts 4.2.1"),
        (10 * S, "step step-clock pod=a by_s=-30"), (10 * S + 1, "the clock of a's agents is -30 s off"),
        (40 * S, "the clock of a's agents is 0 s off"),
    )  # fmt: skip
    assert kinds(run(), words=[blindness("clock-step", at_s=-19)], marks=marks) == ["excused"]
    assert kinds(run(), words=[blindness("clock-step", at_s=8)], marks=marks) == ["excused"]
    assert kinds(run(), words=[blindness("clock-step", "b-told", at_s=8)], marks=marks) == ["blind"]


def test_an_agent_that_is_not_well():
    assert kinds(run(), healths=[Health("a-told", 0, 40.0)]) == []
    assert kinds(run(), healths=[Health("a-told", 1, 40.0)]) == ["crash"]
    assert kinds(run(), healths=[Health("a-told", 0, 40.0, ("Traceback",))]) == ["crash"]
    assert kinds(run(), healths=[Health("a-told", None, 400.0)]) == ["crash", "growth"]


def test_what_is_excused_does_not_count():
    assert verdict(judge(run(), [true(LOST)], [said("lost-segment", "critical")], [], [])) == {}
    assert verdict(judge(run(), [true(LOST)], [], [], [])) == {"miss": 1}


def test_two_copies_that_differ_are_right_if_one_of_them_is_wrong():
    """Found by the hunt: a changelog was recreated, an active store started again, and a standby kept its content."""
    word = said("diverged-replica", "critical", agent="rollup-told", at_us=70)
    half = Difference("kv", 0, 3310, 0, 6620)
    assert kinds(run(), [true(half, allowed=True, pod="b")], [word], asked=[look("a", "b")]) == ["excused"]
    assert kinds(run(), [true(half, task="0_1", allowed=True)], [word], asked=[look("a", "b")]) == [
        "false_alarm"
    ]
