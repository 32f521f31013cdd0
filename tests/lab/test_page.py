"""The page hides nothing: every run is counted, every judgement has its name."""

from __future__ import annotations

from typing import Any

from tests.lab.design import SHORT
from tests.lab.page import render


def row(name: str, judgements: list[dict[str, Any]], problem: str = "", **more: Any) -> dict[str, Any]:
    """One result."""
    release, guarantee, _ = name.split("-", 2)
    long = {short: long for long, short in SHORT.items()}[guarantee]
    run = {"release": release, "guarantee": long}
    return {"name": name, "run": run, "problem": problem, "judgements": judgements, "truths": [], **more}


def word(kind: str, detector: str = "lost-segment", severity: str = "critical") -> dict[str, Any]:
    """One judgement."""
    return {
        "kind": kind, "who": "a-told", "task": "0_0", "detector": detector, "severity": severity, "what": "a | b",
    }  # fmt: skip


def test_runs_are_counted_by_release_and_those_that_broke_off_have_no_verdict() -> None:
    page = render(
        [row("3.10.0-eos-1", []), row("3.9.2-eos-life", []), row("3.9.2-eos-2", [word("miss")], "broke")]
    )
    assert "2 runs counted, 1 broke off; 0 with a wrong word." in page
    assert page.index("| 3.9.2 | eos | 1 | 1 | 0 | 0 |") < page.index("| 3.10.0 | eos | 1 | 0 | 0 | 0 |")


def test_every_judgement_is_named_and_what_was_true_is_counted() -> None:
    page = render(
        [row("4.3.1-alos-7", [word("false_alarm"), word("excused"), word("miss", "", ""), word("undecided")])]
    )
    wrong, quiet = page.partition("## Neither")[::2]
    assert "| 4.3.1-alos-7 | false_alarm | a-told | 0_0 | lost-segment critical |" in wrong
    assert "| 4.3.1-alos-7 | miss | a-told | 0_0 | a / b |" in wrong
    assert "| 4.3.1-alos-7 | undecided | a-told | 0_0 | lost-segment critical |" in quiet
    assert "| lost-segment | critical | 1 |" in quiet
    assert "1 with a wrong word" in page


def test_a_copy_that_was_wrong_is_named_by_its_pod() -> None:
    one = {"task": "0_1", "store": "window", "allowed": False, "lost": 3, "extra": 0, "expected": 9}
    page = render([row("4.3.1-eos-1", [], truths=[one, one, {**one, "pod": "b"}])])
    assert page.count("| 4.3.1-eos-1 | 0_1 | window | 3 | 0 | 9 | nothing |") == 1
    assert "| 4.3.1-eos-1 | 0_1 | b's copy of window | 3 | 0 | 9 | nothing |" in page
