"""The page hides nothing: written plays as a matrix, drawn ones counted, every judgement by its name."""

from __future__ import annotations

from typing import Any

from tests.lab.design import SHORT
from tests.lab.page import MARKER, render
from tests.lab.plan import EOS


def row(name: str, judgements: list[dict[str, Any]], problem: str = "") -> dict[str, Any]:
    """One result."""
    release, guarantee, seed = name.split("-", 2)
    long = {short: long for long, short in SHORT.items()}[guarantee]
    return {
        "name": name,
        "run": {
            "release": release,
            "guarantee": long,
            "seed": int(seed) if seed.isdigit() else seed,
            "steps": [["kill", {}], ["check", {}]],
        },
        "problem": problem,
        "judgements": judgements,
        "truths": [],
        "looks": 2,
        "agents": [{"peak_mib": 36.4}],
        "failures": [],
    }


def word(kind: str, detector: str = "lost-segment", severity: str = "critical") -> dict[str, Any]:
    """One judgement."""
    return {
        "kind": kind, "who": "a-told", "task": "0_0", "detector": detector, "severity": severity, "what": "a | b",
    }  # fmt: skip


TORN = word("excused", "torn-store", "warning")
WRITTEN = [
    row("3.9.2-eos-life", []),
    row("3.9.2-eos-k20685", [TORN]),
    row("3.9.2-alos-k20685", []),
    row("4.2.1-eos-k20685", [TORN]),
]


def test_a_letter_per_guarantee():
    """Small for nothing reported, capital for findings; releases in their order; what was not run is empty."""
    page = render([row("3.10.0-alos-life", []), *WRITTEN[:3], row("3.10.0-eos-k20685", [TORN])])
    assert "| scenario | 3.9.2 | 3.10.0 |" in page
    assert "| life | e | a |" in page
    assert "| k20685 | aE | E |" in page
    assert f"| k20685 | {EOS} | 3.9.2, 3.10.0 | torn-store |" in page
    assert "fenced" not in page
    assert "## The hunt" not in page


def test_a_scenario_is_told_with_its_stores_and_settings():
    page = render(
        [row("4.3.1-alos-life-slow-commit", []), row("4.3.1-eos-life live.universal=1 stores=third", [])]
    )
    assert "at-least-once means just that. Stores: kv, window. With `commit.interval.ms=30000`. |" in page
    assert "| life live.universal=1 stores=third | Fresh start," in page
    assert "versioned, third. With `live.universal=1`. |" in page


def test_a_wrong_verdict_shows():
    """A miss, a false alarm, a second incident and a run that broke off have a mark and a row."""
    for judged, problem, text in (
        ([word("miss", "", "")], "", "**missed** a | b"),
        ([word("false_alarm")], "", "**false alarm** lost-segment"),
        ([TORN, word("incidents", "", "")], "", "**not one incident** torn-store"),
        ([], "no broker", "**broke off**"),
    ):
        page = render([*WRITTEN, row("3.9.2-eos-life", judged, problem)])
        assert "| life | ! |  |" in page
        assert f"| life | {EOS} | 3.9.2 | {text} |" in page
        assert "4 runs, 1 wrong." in page


def test_runs_are_counted_by_release_and_guarantee_and_those_that_broke_off_are_not():
    page = render([row("4.3.1-eos-1", []), row("4.3.1-eos-2", []), row("3.9.2-alos-3", [], "broke")])
    assert "2 runs counted, 1 broke off" in page
    assert "| 4.3.1 | eos | 2 | 0 | 0 | 0 |" in page
    assert "| 3.9.2 |" not in page
    assert "36 MiB" in page


def test_every_judgement_is_named_and_what_was_true_is_counted():
    page = render([row("4.3.1-alos-7", [word("false_alarm"), word("excused"), word("miss", "", "")])])
    assert "| 4.3.1-alos-7 | false_alarm | a, configured | 0_0 | lost-segment critical |" in page
    assert "| 4.3.1-alos-7 | miss | a, configured | 0_0 | a / b |" in page
    assert "| lost-segment | critical | 1 | 1 |" in page
    assert "false criticals: 1; runs with a false word: 1 of 1" in page


def test_what_no_one_could_decide_is_counted_and_listed_apart():
    page = render([row("4.3.1-alos-7", [word("undecided"), word("undecided")])])
    assert "Nothing was judged; undecided words: 2; false criticals: 0" in page
    assert "| 4.3.1-alos-7 | a, configured | 0_0 | lost-segment critical | 2 |" in page
    assert "| 4.3.1 | alos | 1 | 0 | 0 | 0 |" in page


def test_a_copy_that_was_wrong_is_named_by_its_pod():
    one = {"task": "0_1", "store": "window", "allowed": False, "lost": 3, "extra": 0, "expected": 9}
    looks = [[1, [["a", "0_1", "window"], ["b", "0_1", "window"]]], [2, None]]
    page = render([{**row("4.3.1-eos-1", []), "truths": [one, {**one, "pod": "b"}], "asked": looks}])
    assert "2 checks of the truth, 2 of a pod's own copy of a store." in page
    assert "| 4.3.1-eos-1 | 0_1 | window | 3 | 0 | 9 | nothing |" in page
    assert "| 4.3.1-eos-1 | 0_1 | b's copy of window | 3 | 0 | 9 | nothing |" in page


def test_what_was_written_by_hand_stays():
    before = render([], "") + "kept\n"
    after = render([row("4.3.1-eos-1", [])], before)
    assert after.partition(MARKER)[2].strip() == "kept"
