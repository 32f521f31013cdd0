"""May this pod be restarted: by task, and on the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.audited import gather
from agent.contract.exit_codes import Exit
from spark_rollup.errors import UsageError
from spark_rollup.fleet.meta import Row
from spark_rollup.report import restart_answer
from spark_rollup.report.restart_answer import Known, Question
from tests.spark_rollup.conftest import Audited
from tests.spark_rollup.report.page import page_rows
from tests.spark_rollup.support.fleet import HORIZON_S, STORIES, Fleet, Pod, at_us, story


def two_copies(fleet: Fleet, release: str = "3.9.2", **settings: object) -> tuple[Pod, Pod]:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, release, **({"num_standby_replicas": 1} | settings))
    for pod in (a, b):
        pod.holds("0_0", 5).measures("0_0", 800, offset=100, puts=100, bytes=5000)
    return a, b


@story
def a_standby_is_there(fleet: Fleet) -> None:
    two_copies(fleet, processing_guarantee="at_least_once")


@story
def exposed_to_20685(fleet: Fleet) -> None:
    a, _ = two_copies(fleet, "4.1.2", processing_guarantee="exactly_once_v2")
    a.finds("stale-eos-checkpoint", "0_0", 50, level="exposure", severity="warning")


@story
def one_copy(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").configures(1, "4.3.1", processing_guarantee="exactly_once_v2")
    a.holds("0_0", 5).measures("0_0", 800, offset=100, puts=100, bytes=5000)


@story
def the_other_copy_is_damaged(fleet: Fleet) -> None:
    two_copies(fleet)[1].finds("resurrected-checkpoint", "0_0", 100)


@story
def the_other_pod_is_silent(fleet: Fleet) -> None:
    two_copies(fleet)
    quiet = fleet.pods[1]
    quiet.ends_s, quiet.announces_end = 700, False
    quiet.records = [record for record in quiet.records if "stores" not in record.body]


@story
def both_are_damaged_and_exposed(fleet: Fleet) -> None:
    a, _ = two_copies(fleet, "4.1.2", processing_guarantee="exactly_once_v2")
    a.finds("stale-eos-checkpoint", "0_0", 50, level="exposure", severity="warning")
    a.finds("skipped-eos-wipe", "0_0", 60, store="s", identity="suspect", next_action="remove the directory")


@story
def not_exposed_yet(fleet: Fleet) -> None:
    a, _ = two_copies(fleet, "4.1.2", processing_guarantee="exactly_once_v2")
    a.writes_checkpoint("0_0", 20, offset=10)


@story
def fixed_release(fleet: Fleet) -> None:
    a, _ = two_copies(fleet, "4.1.3", processing_guarantee="exactly_once_v2")
    a.writes_checkpoint("0_0", 20, offset=10)


@story
def checkpoint_is_gone(fleet: Fleet) -> None:
    a, _ = two_copies(fleet, "4.1.2", processing_guarantee="exactly_once_v2")
    a.writes_checkpoint("0_0", 20, offset=10).changes("checkpoint-deleted", "0_0", 30)


@story
def release_unknown(fleet: Fleet) -> None:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, processing_guarantee="exactly_once_v2")
    for pod in (a, b):
        pod.holds("0_0", 5).measures("0_0", 800, offset=100, puts=100)


@story
def the_pod_itself_is_silent(fleet: Fleet) -> None:
    two_copies(fleet)
    quiet = fleet.pods[0]
    quiet.ends_s, quiet.announces_end = 700, False
    quiet.records = [record for record in quiet.records if "stores" not in record.body]


@story
def silent_before_it_held_anything(fleet: Fleet) -> None:
    two_copies(fleet)
    fleet.pod("pod-c", ends_s=40, announces_end=False)


@story
def the_pod_is_blind(fleet: Fleet) -> None:
    two_copies(fleet)[0].is_blind(850, None)


@story
def events_were_lost_at_the_end(fleet: Fleet) -> None:
    a, _ = two_copies(fleet)
    a.measures("0_0", 890, offset=100, puts=100)
    a.loses(len(a.lines()) - 2)


@story
def events_were_lost_long_ago(fleet: Fleet) -> None:
    two_copies(fleet)[0].loses(3)


@story
def one_task_is_not_seen(fleet: Fleet) -> None:
    a, b = two_copies(fleet)
    for pod in (a, b):
        pod.holds("0_1", 5).measures("0_1", 800, offset=100, puts=100)
    a.is_blind(850, None, cause="too-large", application_id="orders", task_id="0_1")


@story
def an_application_is_not_seen(fleet: Fleet) -> None:
    two_copies(fleet)
    fleet.pod("pod-c").is_blind(600, None, cause="denied", application_id="orders")


@story
def the_other_copy_was_let_go(fleet: Fleet) -> None:
    two_copies(fleet)[1].releases("0_0", 860)


@story
def the_other_agent_said_goodbye(fleet: Fleet) -> None:
    two_copies(fleet)
    fleet.pods[1].ends_s = 400
    fleet.pods[1].records = [record for record in fleet.pods[1].records if "stores" not in record.body]


@story
def stopped_in_order(fleet: Fleet) -> None:
    for pod in two_copies(fleet, "4.1.2", processing_guarantee="exactly_once_v2"):
        pod.releases("0_0", 860)


@story
def dead_and_exposed(fleet: Fleet) -> None:
    a, _ = two_copies(fleet, "4.1.2", processing_guarantee="exactly_once_v2")
    a.releases("0_0", 860)
    a.finds(
        "stale-eos-checkpoint",
        "0_0",
        865,
        level="exposure",
        severity="warning",
        next_action="before the start",
    )


@story
def dead_and_damaged_long_ago(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").configures(1, "4.3.1", processing_guarantee="exactly_once_v2")
    a.finds("false-clean-store", "0_3", 20, store="s", identity="i")
    fleet.pod("pod-b").holds("0_0", 5).measures("0_0", 800, offset=100, puts=100)


@story
def damaged_by_a_setting_that_nobody_gave(fleet: Fleet) -> None:
    """One of two agents cannot tell whether its copy is damaged."""
    two_copies(fleet)
    step = {"at": "2026-11-18T11:06:40.000000Z", "what": "exactly-once: critical", "where": "orders/0_0, 0_7"}
    fleet.pods[0].finds(
        "undecided", None, 100, level="exposure", severity="warning", confidence="unknown",
        missing_facts=["processing_guarantee"], evidence=[step],
    )  # fmt: skip


def answer(audited: Audited, name: str, pod: str = "pod-a", task: str = "0_0") -> Row:
    """Take the answer for a task on a pod."""
    (row,) = [row for row in audited.rows("restarts", name) if (row["pod"], row["task_id"]) == (pod, task)]
    return row


def asked(audited: Audited, name: str, pod: str | None = "pod-a", **given: object) -> tuple[list[str], Exit]:
    """Ask about a story as the command does, a minute after its end."""
    doubts = {row["pod"]: row for row in audited.rows("doubts", name)}
    nothing = {"doubt": None, "gone": False}
    pods = [
        {"namespace": name, "pod": x.name, **nothing, **doubts.get(x.name, {})} for x in STORIES[name].pods
    ]
    question = {"now_us": at_us(HORIZON_S + 60), "pod": pod, "max_age_s": 900} | given
    rows = audited.rows("restarts", name)
    return restart_answer.answer(Known(rows, pods, as_of_us=at_us(HORIZON_S)), Question(**question))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "expected", "unclean"),
    [
        (a_standby_is_there, "safe", "records since the last checkpoint are replayed onto the store"),
        (exposed_to_20685, "clean-stop-only", "uncommitted records may stay in the store"),
        (one_copy, "restore", "may be deleted before it comes back (KAFKA-20805)"),
        (the_other_copy_is_damaged, "keep", "not known"),
        (the_other_pod_is_silent, "unknown", "not known"),
        (both_are_damaged_and_exposed, "damaged", "uncommitted records may stay in the store"),
        (the_other_copy_was_let_go, "restore", "not known"),
        (the_other_agent_said_goodbye, "restore", "not known"),
        (stopped_in_order, "not-running", "not running: no process holds it there"),
        (dead_and_exposed, "damaged", "not running"),
    ],
)
def test_the_answer_says_who_else_has_the_task(audited, name, expected, unclean):
    """One answer per copy, with what a kill would do to it."""
    row = answer(audited, name)
    assert row["answer"] == expected
    assert unclean in str(row["unclean_stop"])


@pytest.mark.parametrize(
    ("name", "unclean"),
    [
        (not_exposed_yet, "the store is not wiped: the next start trusts what is there"),
        (fixed_release, "the store is wiped at the next start and restored"),
        (checkpoint_is_gone, "the store is wiped at the next start and restored"),
        (exposed_to_20685, "uncommitted records may stay in the store and are trusted (KAFKA-20685)"),
        (release_unknown, "depends on the release, which is not known for sure"),
        (one_copy, "the store is wiped at the next start and restored"),
    ],
)
def test_a_kill_does_what_the_release_does(audited, name, unclean):
    """An exactly-once task that keeps its checkpoint while it runs is not wiped after a kill: KAFKA-20685."""
    assert str(answer(audited, name)["unclean_stop"]).startswith(unclean)


def test_an_exposed_copy_has_every_answer_that_holds(audited):
    """Damage goes first, and does not hide that the copy must be stopped cleanly; the other one restored from it."""
    row = answer(audited, both_are_damaged_and_exposed)
    assert row["kinds"] == ["damaged", "clean-stop-only", "unknown"]
    assert row["follow"] == ["stale-eos-state"]
    both = both_are_damaged_and_exposed
    known = [*audited.rows("findings", both), *audited.rows("alone", both)]
    (told,) = restart_answer.with_steps([row], gather(known))
    assert str(told["first_action"]).startswith("Leave the volume of pod-a")
    assert answer(audited, both_are_damaged_and_exposed, "pod-b")["ill_elsewhere"] == ["pod-a (damaged)"]


@pytest.mark.parametrize(
    ("name", "pod", "why"),
    [
        (the_pod_itself_is_silent, "pod-a", "not heard since"),
        (silent_before_it_held_anything, "pod-c", "not heard since"),
        (the_pod_is_blind, "pod-a", "not watched at"),
        (an_application_is_not_seen, "pod-c", "not watched at"),
        (events_were_lost_at_the_end, "pod-a", "not watched at"),
        (the_other_agent_said_goodbye, "pod-b", "its agent ended at"),
    ],
)
def test_a_pod_that_no_one_watches_is_unknown(audited, name, pod, why):
    """Silent, silent before it held anything, blind, or something lost since the last round of summaries."""
    lines, code = asked(audited, name, pod)
    assert code is Exit.UNREAD
    assert lines[1].startswith(f"{pod}: unknown: {why}")


def test_a_copy_that_a_setting_decides_about_is_unknown(audited):
    """Nothing is safe beside an open question, held or not, and the other pod has no copy to rely on."""
    row = answer(audited, damaged_by_a_setting_that_nobody_gave)
    assert (row["answer"], row["doubt"]) == ("unknown", "undecided: processing_guarantee not given")
    assert answer(audited, damaged_by_a_setting_that_nobody_gave, task="0_7")["answer"] == "unknown"
    other = answer(audited, damaged_by_a_setting_that_nobody_gave, "pod-b")
    assert other["ill_elsewhere"] == ["pod-a (undecided: processing_guarantee not given)"]


def test_what_was_lost_long_ago_has_been_reported_again(audited):
    """A whole round of summaries later the picture is whole again."""
    assert asked(audited, events_were_lost_long_ago)[1] is Exit.CLEAR


def test_a_task_that_is_not_seen_is_unknown(audited):
    """Blindness of one task is that task's; the pod's answer is its worst."""
    assert answer(audited, one_task_is_not_seen)["answer"] == "safe"
    assert answer(audited, one_task_is_not_seen, task="0_1")["answer"] == "unknown"
    assert asked(audited, one_task_is_not_seen)[1] is Exit.UNREAD


def test_a_copy_that_no_one_holds_is_no_replica(audited):
    """A pod that let its task go a moment ago, in a rolling restart, does not make the next restart safe."""
    assert answer(audited, the_other_copy_was_let_go)["ill_elsewhere"] == ["pod-b (not held)"]


def test_damage_on_a_dead_instance_counts(audited):
    """A directory that nobody holds, damaged long ago: a start would trust it."""
    row = answer(audited, dead_and_damaged_long_ago, task="0_3")
    assert (row["answer"], row["follow"]) == ("damaged", ["false-clean-store"])
    lines, code = asked(audited, dead_and_damaged_long_ago)
    assert (lines[1], code) == ("pod-a: damaged: follow false-clean-store first (1 task)", Exit.FOUND)
    assert "      if killed: not running: no process holds it there" in lines


def test_the_cost_is_that_of_the_copy(audited):
    """Without a copy elsewhere the bytes to restore are told."""
    assert answer(audited, one_copy)["restore_bytes"] == 5000
    assert answer(audited, a_standby_is_there)["restore_bytes"] is None


def test_the_answer_says_how_old_it_is(audited):
    """First comes as of when; what is older than `--max-age`, or ahead of the clock by as much, answers nothing."""
    lines, code = asked(audited, a_standby_is_there)
    assert (lines[0], code) == ("as of 2026-11-18 11:21:40 UTC, 60 s old", Exit.CLEAR)
    late, code = asked(audited, a_standby_is_there, now_us=at_us(3 * 86_400 + HORIZON_S))
    assert late[0] == "as of 2026-11-18 11:21:40 UTC, 3 d old: too old to answer (limit 15 min: --max-age)"
    assert late[1].startswith("pod-a: unknown: too old; it was safe: ")
    assert code is Exit.UNREAD
    old = asked(audited, a_standby_is_there, now_us=at_us(3 * 86_400 + HORIZON_S), max_age_s=None)
    assert old[1] is Exit.CLEAR
    early, code = asked(audited, a_standby_is_there, now_us=at_us(0))
    assert ("15 min ahead of this clock" in early[0], code) == (True, Exit.CLEAR)
    assert asked(audited, a_standby_is_there, now_us=at_us(-60))[1] is Exit.UNREAD
    table, code = asked(audited, a_standby_is_there, None, now_us=at_us(3 * 86_400 + HORIZON_S))
    assert [line.split()[1] for line in table[2:]] == ["unknown", "unknown"]
    assert code is Exit.UNREAD


def given(pod: str, task: str, *kinds: str, **more: object) -> Row:
    """Make a row of the table of restarts."""
    return page_rows.answer(pod=pod, task_id=task, answer=kinds[0], kinds=list(kinds), **more)


def pod_of(name: str, namespace: str = "shop", **more: object) -> Row:
    """Make a row about a pod."""
    return {"namespace": namespace, "pod": name, "doubt": None, "gone": False} | more


NOW = Question(now_us=60_000_000)


def test_the_headline_names_every_kind():
    """The first line of a pod must be enough: damage, then a clean stop, then the rest, each with its tasks."""
    rows = [
        given("pod-a", "0_0", "safe", healthy_elsewhere=["pod-b"]),
        given("pod-a", "0_1", "restore", restore_bytes=3 << 20),
        given("pod-a", "0_2", "clean-stop-only", "restore"),
        given("pod-a", "0_3", "damaged", follow=["skipped-eos-wipe"], first_action="remove it"),
    ]
    lines, code = restart_answer.answer(Known(rows, [pod_of("pod-a")]), replace(NOW, pod="pod-a"))
    assert code is Exit.FOUND
    assert lines[1].startswith(
        "pod-a: damaged: follow skipped-eos-wipe first (1 task); clean-stop-only: OK to"
    )
    assert "(KAFKA-20685) (1 task); restore: no other copy" in lines[1]
    assert lines[1].endswith("(2 tasks); safe: a healthy, recent copy is held elsewhere (1 task)")
    assert lines.count("  first: remove it") == 1
    assert any("restoring costs 3 MiB" in line for line in lines)


def test_all_pods_are_one_table():
    """A pod's answer is the worst of its tasks'; a watched pod without tasks is safe, a gone one is set apart."""
    rows = [given("pod-a", "0_0", "safe"), given("pod-a", "0_1", "restore")]
    pods = [pod_of("pod-a"), pod_of("pod-b"), pod_of("pod-z", gone=True, doubt="its agent ended at 10:00:00")]
    lines, code = restart_answer.answer(Known(rows, pods), NOW)
    assert [line.split()[:2] for line in lines[2:4]] == [["pod-a", "restore"], ["pod-b", "safe"]]
    assert lines[4] == "stopped, as their agents reported: pod-z"
    assert code is Exit.FOUND
    assert restart_answer.answer(Known(rows, pods[1:]), NOW)[1] is Exit.CLEAR
    assert restart_answer.answer(Known(rows, pods), replace(NOW, pod="pod-z"))[1] is Exit.UNREAD
    assert restart_answer.answer(Known(rows, pods[2:]), NOW)[1] is Exit.UNREAD, "nobody is left to know"
    doubtful = [pod_of("pod-b", doubt="not heard since 10:00:00")]
    assert restart_answer.answer(Known([], doubtful), NOW)[1] is Exit.UNREAD
    assert restart_answer.answer(Known(rows, [pods[0], *doubtful]), NOW)[1] is Exit.FOUND


def test_namesakes_are_kept_apart():
    """The same pod in two namespaces: one must be named, and no answer mixes them."""
    rows = [given("pod-a", "0_0", "safe"), given("pod-a", "0_0", "damaged", namespace="staging")]
    pods = [pod_of("pod-a"), pod_of("pod-a", "staging"), pod_of("pod-b")]
    with pytest.raises(UsageError, match="several namespaces: name one with --namespace: shop, staging"):
        restart_answer.answer(Known(rows, pods), replace(NOW, pod="pod-a"))
    assert (
        restart_answer.answer(Known(rows, pods), replace(NOW, pod="pod-a", namespace="shop"))[1] is Exit.CLEAR
    )
    staged = replace(NOW, pod="pod-a", namespace="staging")
    assert restart_answer.answer(Known(rows, pods), staged)[1] is Exit.FOUND
    lines, _ = restart_answer.answer(Known(rows, pods), NOW)
    assert [line.split()[:2] for line in lines[2:]] == [
        ["shop/pod-a", "safe"],
        ["staging/pod-a", "damaged"],
        ["shop/pod-b", "safe"],
    ]
    with pytest.raises(UsageError, match="no event of pod pod-x; known: pod-a, pod-b"):
        restart_answer.answer(Known(rows, pods), replace(NOW, pod="pod-x"))
