"""The page of the live proof: releases x scenarios x outcome, from a results file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.live.plan import numbers

Row = Mapping[str, Any]

_HEAD = """# Live proof

Real releases of Kafka Streams ran real lives against a real broker, with two live agents on each state directory: one
told release, guarantee, delays and standbys (`--set`), one told nothing and in a PID namespace of its own. What must
be found is proved by the application itself: the counts that its store holds afterwards. Written by
`python tests/live/run.py --results FILE --page docs/live.md`; scenarios are in `tests/live`.

- `quiet`: nothing of warning or above was said, and nothing was wrong.
- detectors: what was said at warning or above, and had to be said or truly holds for that release.
- **missed**, **false alarm**, **broke off**: what it says; none may stand here.
"""


def render(rows: Iterable[Row], about: Mapping[str, str]) -> str:
    """Write the page.

    Args:
        rows: Outcomes as `Outcome.as_json` gives them; of the same run the last counts.
        about: Scenario -> what happens in it, one sentence.
    """
    last = {(row["scenario"], row["release"], row["guarantee"]): row for row in rows}
    parts = [_HEAD]
    for scenario, sentence in about.items():
        of_scenario = {key[1:]: row for key, row in last.items() if key[0] == scenario}
        if of_scenario:
            parts.append(f"## {scenario}\n\n{sentence}\n\n{_table(of_scenario)}")
    wrong = sum(_is_wrong(row) for row in last.values())
    parts.append(f"{len(last)} runs, {wrong} wrong.\n")
    return "\n".join(parts)


def _table(rows: Mapping[tuple[str, str], Row]) -> str:
    guarantees = sorted({guarantee for _, guarantee in rows})
    releases = sorted({release for release, _ in rows}, key=numbers)
    lines = ["| release | " + " | ".join(guarantees) + " |", "|---" * (len(guarantees) + 1) + "|"]
    for release in releases:
        cells = [_cell(rows.get((release, guarantee))) for guarantee in guarantees]
        lines.append(f"| {release} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    if row["problem"]:
        return "**broke off**"
    if row["missed"]:
        return f"**missed** {', '.join(row['missed'])}"
    loud = sorted({said["detector"] for said in row["findings"] if said["severity"] != "info"})
    if row["false_alarms"]:
        return f"**false alarm** {', '.join(loud)}"
    return ", ".join(loud) or "quiet"


def _is_wrong(row: Row) -> bool:
    return bool(row["problem"] or row["missed"] or row["false_alarms"])
