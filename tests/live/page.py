"""The page of the live proof: one matrix of scenario x release from a results file, exceptions below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.live.plan import numbers

Row = Mapping[str, Any]
Key = tuple[str, str, str]
"""Scenario, release, guarantee."""

MARKER = "<!-- generated up to here (tests/live/page.py); below, written by hand -->"

_HEAD = """# Live proof

Real releases of Kafka Streams ran against a real broker, with two live agents on each state directory: one
with release, guarantee, delays and standbys configured (`--set`), one with nothing configured and in a
separate PID namespace. What must be found is proved by the application itself: the counts that its store holds
afterwards. Written by `python tests/live/run.py --results FILE --page build/evidence/live.md`; scenarios are in
`tests/live`.

`a` at-least-once, `e` exactly-once: nothing of warning or above was reported, and nothing was wrong. `A`, `E`:
findings of warning or above, all of them required or true for that release; [listed below](#findings). `!`:
missed, a false alarm, more than one incident of one bug, or broke off; none may be here. Empty: not run.
"""
_LETTER = {"at_least_once": "a"}


def render(rows: Iterable[Row], about: Mapping[str, str], page: str = "") -> str:
    """Write the page.

    Args:
        rows: Outcomes as `Outcome.as_json` gives them; of the same run the last counts.
        about: Scenario -> what happens in it, one sentence.
        page: The page as it is; what is below the marker is kept.
    """
    last: dict[Key, Row] = {(row["scenario"], row["release"], row["guarantee"]): row for row in rows}
    wrong = sum(_is_wrong(row) for row in last.values())
    parts = [
        _HEAD,
        f"{len(last)} runs, {wrong} wrong.\n",
        _matrix(last, [scenario for scenario in about if any(key[0] == scenario for key in last)]),
        f"## Findings\n\n{_findings(last, about)}",
        f"## Scenarios\n\n{_scenarios(last, about)}",
        MARKER + (page.partition(MARKER)[2] or "\n"),
    ]
    return "\n".join(parts)


def _matrix(last: Mapping[Key, Row], scenarios: Iterable[str]) -> str:
    releases = sorted({key[1] for key in last}, key=numbers)
    lines = ["| scenario | " + " | ".join(releases) + " |", "|---" * (len(releases) + 1) + "|"]
    for scenario in scenarios:
        cells = (_cell(last, scenario, release) for release in releases)
        lines.append(f"| {scenario} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(last: Mapping[Key, Row], scenario: str, release: str) -> str:
    """Say what came out on one release: a letter per guarantee."""
    here = {key[2]: row for key, row in last.items() if key[:2] == (scenario, release)}
    return "".join(_letter(guarantee, row) for guarantee, row in sorted(here.items()))


def _letter(guarantee: str, row: Row) -> str:
    letter = _LETTER.get(guarantee, "e")
    return "!" if _is_wrong(row) else letter.upper() if _loud(row) else letter


def _findings(last: Mapping[Key, Row], about: Mapping[str, str]) -> str:
    """List what was reported, runs with the same detectors in one row."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for (scenario, release, guarantee), row in last.items():
        if said := _outcome(row):
            grouped.setdefault((scenario, guarantee, said), []).append(release)
    lines = ["| scenario | guarantee | releases | detectors |", "|---|---|---|---|"]
    order = list(about)
    for (scenario, guarantee, said), releases in sorted(
        grouped.items(), key=lambda item: order.index(item[0][0])
    ):
        lines.append(f"| {scenario} | {guarantee} | {', '.join(sorted(releases, key=numbers))} | {said} |")
    return "\n".join(lines) + "\n"


def _outcome(row: Row) -> str:
    loud = ", ".join(_loud(row))
    if row["problem"]:
        return "**broke off**"
    if row["missed"]:
        return f"**missed** {', '.join(row['missed'])}"
    if row["false_alarms"]:
        return f"**false alarm** {loud}"
    return f"**not one incident** {loud}" if row.get("incidents") else loud


def _scenarios(last: Mapping[Key, Row], about: Mapping[str, str]) -> str:
    """Say what happens, scenarios with the same sentence in one row."""
    played = {key[0] for key in last}
    named: dict[str, list[str]] = {}
    for scenario, sentence in about.items():
        if scenario in played:
            named.setdefault(sentence, []).append(scenario)
    lines = ["| scenario | what happens |", "|---|---|"]
    lines += [f"| {', '.join(scenarios)} | {sentence} |" for sentence, scenarios in named.items()]
    return "\n".join(lines) + "\n"


def _loud(row: Row) -> list[str]:
    return sorted({said["detector"] for said in row["findings"] if said["severity"] != "info"})


def _is_wrong(row: Row) -> bool:
    return bool(row["problem"] or row["missed"] or row["false_alarms"] or row.get("incidents"))
