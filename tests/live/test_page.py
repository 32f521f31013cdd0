"""The page of the live proof: a matrix that hides nothing."""

from __future__ import annotations

from typing import Any

from tests.live.page import MARKER, render

ABOUT = {"life": "Starts and stops.", "k1": "A bug.", "never": "Not played."}


def outcome(scenario: str, release: str, guarantee: str, *detectors: str, **more: Any) -> dict[str, Any]:
    """Make a row of a results file."""
    said = [{"detector": name, "severity": "warning"} for name in detectors]
    row = {"scenario": scenario, "release": release, "guarantee": guarantee, "findings": said}
    return {**row, "problem": "", "missed": [], "false_alarms": 0, **more}


ROWS = [
    outcome("life", "3.10.0", "at_least_once"),
    outcome("life", "3.9.2", "exactly_once"),
    outcome("k1", "3.9.2", "exactly_once", "torn-store"),
    outcome("k1", "3.9.2", "at_least_once"),
    outcome("k1", "3.10.0", "exactly_once", "torn-store"),
]


def test_a_letter_per_guarantee() -> None:
    """Small for nothing reported, capital for findings; releases in their order; what was not run is empty."""
    page = render(ROWS, ABOUT)
    assert "| scenario | 3.9.2 | 3.10.0 |" in page
    assert "| life | e | a |" in page
    assert "| k1 | aE | E |" in page
    assert "never" not in page


def test_findings_are_listed_once() -> None:
    """Releases with the same findings are one row."""
    assert "| k1 | exactly_once | 3.9.2, 3.10.0 | torn-store |" in render(ROWS, ABOUT)


def test_a_wrong_verdict_shows() -> None:
    """A miss, a false alarm and a run that broke off have a mark and a row."""
    for more, text in (
        ({"missed": ["torn-store"]}, "**missed** torn-store"),
        ({"false_alarms": 1}, "**false alarm** unopenable-task"),
        ({"problem": "no broker"}, "**broke off**"),
    ):
        page = render([*ROWS, outcome("life", "3.9.2", "exactly_once", "unopenable-task", **more)], ABOUT)
        assert "| life | ! | a |" in page
        assert f"| life | exactly_once | 3.9.2 | {text} |" in page
        assert "5 runs, 1 wrong." in page


def test_what_people_wrote_is_kept() -> None:
    """The part below the marker is kept."""
    assert render(ROWS, ABOUT, f"old\n{MARKER}\n\n## Left out\n").endswith(f"{MARKER}\n\n## Left out\n")
