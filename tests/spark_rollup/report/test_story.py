"""`why`: the verdict first, and a story in which runs of the same event are one line."""

from __future__ import annotations

from typing import Any

from spark_rollup.report import story
from tests.spark_rollup.report.page.page_rows import START_US, lane

Row = dict[str, object]


def step(kind: str, at_s: int, pod: str = "pod-a", to_s: int | None = None, **more: object) -> Row:
    """Make a row of the timeline; it begins at 2026-11-18 11:06:40 UTC."""
    return lane(kind, at_s, to_s, pod, **{"detail": None} | more)


def finding(detector: str, severity: str, status: str = "open", **more: object) -> Row:
    """Make a finding of a rule or an agent."""
    base = {"detector": detector, "severity": severity, "confidence": "suspected", "status": status}
    return base | {"summary": "It is so.", "next_action": "Do it.", "pod": "pod-a"} | more


def test_a_run_of_the_same_event_is_one_line():
    """Two pods write checkpoints by turns: one line each, with number, offsets and both ends."""
    steps = [
        step("checkpoint", at_s, pod, offset=offset)
        for at_s, pod, offset in (
            (0, "pod-a", 10),
            (1, "pod-b", 7),
            (30, "pod-a", 20),
            (31, "pod-b", 7),
            (60, "pod-a", 30),
        )
    ]
    assert story.story_lines(steps) == [
        "  2026-11-18 11:06:40.000 UTC  pod-a  3 x checkpoint written at offset 10 to 30, "
        "until 2026-11-18 11:07:40.000 UTC",
        "  2026-11-18 11:06:41.000 UTC  pod-b  2 x checkpoint written at offset 7, until 2026-11-18 11:07:11.000 UTC",
    ]


def test_anything_else_ends_a_run():
    """What lies between two runs stays between them, on whichever pod it was."""
    steps = [
        step("checkpoint", 0, offset=10),
        step("checkpoint", 1, offset=11),
        step("checkpoint-deleted", 2, "pod-b", detail="checkpoint-deleted"),
        step("checkpoint", 3, offset=12),
    ]
    told = [line.split("UTC", 1)[1] for line in story.story_lines(steps)]
    assert [line.split("  ")[1:3] for line in told] == [
        ["pod-a", "2 x checkpoint written at offset 10 to 11, until 2026-11-18 11:06:41.000 UTC"],
        ["pod-b", "checkpoint deleted"],
        ["pod-a", "checkpoint written at offset 12"],
    ]


def test_marks_and_spans_are_words():
    """Machine words become words; spans say until when, unwatched times why."""
    steps = [
        step("created", 0, detail="task-created"),
        step("deleted", 1, detail="store-deleted cleaner-walk", store="counts"),
        step("holder", 2, to_s=5, detail="lasting"),
        step("unknown", 3, to_s=6, detail="silent"),
    ]
    told = [line.split("pod-a  ")[1] for line in story.story_lines(steps)]
    assert told == [
        "task created",
        "store deleted cleaner-walk, store counts",
        "holds the task until the last reading",
        "not watched until 2026-11-18 11:06:46.000 UTC: silent",
    ]


def test_only_readings_with_something_new_flushed_are_listed():
    """The flush beyond a checkpoint is what matters; a reading of the same numbers is none."""
    steps = [
        step("size", at_s, store="counts", puts=puts, offset=offset)
        for at_s, puts, offset in ((0, 5584, 1999), (60, 5584, 1999), (120, 7362, 1999), (180, None, None))
    ]
    (line,) = story.story_lines(steps)
    assert "2 x data flushed, store counts, puts 5584 to 7362, offset 1999, until 2026-11-18 11:08:40" in line


def test_the_verdict_is_the_first_line():
    """A rule's open finding, else an agent's, else that there is none; what is over is no verdict."""
    rules = [
        finding("task-churn", "info"),
        finding("split-owner", "critical"),
        finding("x", "critical", "resolved"),
    ]
    said = [finding("torn-store", "warning")]
    where = "shop/orders/0_0 on pod-a, pod-b, as of 2026-11-18 11:06:40.000 UTC"
    pods = ["pod-b", "pod-a"]

    def first_line(verdicts: list[Row], local: list[Row]) -> str:
        return story.headline("shop/orders/0_0", pods, START_US, verdicts, local)

    assert first_line(rules, said) == f"critical, suspected: split-owner: {where}"
    assert first_line(rules[2:], said) == (
        f"warning, suspected: torn-store (reported by its agent only): {where}"
    )
    assert first_line(rules[2:], []) == f"no open finding: {where}"
    # a rule's remark does not hide what the agent says; what a rule refutes is not wrong
    assert first_line([rules[0], rules[2]], said).startswith("warning, suspected: torn-store (reported")
    refuting = finding("missing-standby", "info", "resolved", refutes=["f"])
    refuted = finding("unowned-task", "warning", finding_id="f")
    assert first_line([refuting], [refuted]) == f"no open finding: {where}"
    assert first_line([refuting], [refuted, *said]).startswith("warning, suspected: torn-store")


def test_what_is_open_about_the_whole_application_on_its_pods_concerns_a_task():
    """Two pods share a volume: no task there is fine, though no finding names one."""
    whole: Any = {"task_id": None, "level": "damage"}
    clones = finding("cloned-volume", "critical", pods=["pod-a", "pod-b"], **whole)
    by_agent = finding("shared-state-dir", "critical", **whole)
    of_task = finding("torn-store", "info", "resolved", task_id="0_0", level="damage")
    others = [
        clones | {"pods": ["pod-c", "pod-d"]}, clones | {"status": "resolved"}, clones | {"severity": "info"},
        clones | {"level": "self"}, by_agent | {"pod": "pod-c"},
    ]  # fmt: skip
    assert story.about_task([clones, *others, by_agent, of_task], ["pod-a"]) == [clones, by_agent, of_task]


def test_the_worst_comes_first_and_what_is_over_last():
    """Only open findings ask for something."""
    lines = story.verdict_lines(
        [finding("a", "critical", "resolved"), finding("b", "info"), finding("c", "critical")]
    )
    assert [line.split()[:4] for line in lines] == [
        ["fleet:", "critical", "suspected", "c"], ["->", "Do", "it."],
        ["fleet:", "info", "suspected", "b"], ["->", "Do", "it."],
        ["fleet:", "critical", "suspected", "a"],
    ]  # fmt: skip
    assert story.verdict_lines([]) == ["  fleet: no finding"]


def test_a_long_story_is_cut_in_the_middle():
    """Its begin and its end stay, and what is left out is counted."""
    steps = [step("created", at_s, detail=f"store-created {at_s}") for at_s in range(story.MAX_LINES + 5)]
    lines = story.story_lines(steps)
    assert len(lines) == story.MAX_LINES + 1
    assert lines[story.MAX_LINES // 2] == "  ... 5 lines left out"
