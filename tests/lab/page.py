"""The page of the lab: every run counted by release and guarantee, and every judgement by its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.lab.design import SHORT
from tests.lab.judge import HARMLESS
from tests.lab.plan import numbers

Row = Mapping[str, Any]
_HEAD = """# The lab

Real releases of Kafka Streams ran against a real broker, through written plays and through mishaps drawn from a seed.
Beside each instance ran two agents: one with every setting configured (`told`), one with none and in a separate PID
namespace (`untold`). Every warning and critical word was judged, and every silence. A run is played again by its name:
`make hunt ARGS="--replay NAME"`. Runs that broke off have no verdict.
"""


def render(rows: Iterable[Row]) -> str:
    """Write the page of results as `Result.as_json` gives them."""
    known = sorted(rows, key=lambda row: (numbers(row["run"]["release"]), row["name"]))
    counted = [row for row in known if not row["problem"]]
    judged = [(row, one) for row in counted for one in row["judgements"]]
    wrong = [(row["name"], *_told(one)) for row, one in judged if one["kind"] not in HARMLESS]
    quiet = [(row["name"], *_told(one)) for row, one in judged if one["kind"] in ("undecided", "blind_spot")]
    true = Counter((one["detector"], one["severity"]) for _, one in judged if one["kind"] == "excused")
    word = ("run", "kind", "who", "task", "word")
    parts = [
        _HEAD,
        f"{len(counted)} runs counted, {len(known) - len(counted)} broke off;"
        f" {len({name for name, *_ in wrong})} with a wrong word.\n",
        _table(
            ("release", "guarantee", "runs", "broke off", "judged", "with a wrong store"), _releases(known)
        ),
        "## Judged wrong\n",
        _table(word, wrong),
        "## Neither right nor wrong\n\nOf copies that were not asked after it, or in an announced blind spot.\n",
        _table(word, quiet),
        "## Stores that were wrong\n",
        _table(("run", "task", "store", "lost", "too many", "of", "said"), _stores(counted)),
        "## True words\n",
        _table(("word", "severity", "times"), [(*key, times) for key, times in sorted(true.items())]),
    ]
    return "\n".join(parts)


def _releases(known: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    keys = dict.fromkeys((row["run"]["release"], row["run"]["guarantee"]) for row in known)
    for key in keys:
        here = [row for row in known if (row["run"]["release"], row["run"]["guarantee"]) == key]
        counted = [row for row in here if not row["problem"]]
        judged = sum(any(one["kind"] not in HARMLESS for one in row["judgements"]) for row in counted)
        wrong = sum(any(not truth["allowed"] for truth in row["truths"]) for row in counted)
        yield key[0], SHORT[key[1]], len(counted), len(here) - len(counted), judged, wrong


def _stores(counted: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    for row in counted:
        found = {(x["task"], x["store"], x.get("pod", "")): x for x in row["truths"] if not x["allowed"]}
        for (task, store, pod), truth in found.items():
            said = {x["detector"] for x in row["judgements"] if x["severity"] and x["task"] == task}
            figures = (truth["lost"], truth["extra"], truth["expected"])
            place = f"{pod}'s copy of {store}" if pod else store
            yield row["name"], task, place, *figures, ", ".join(sorted(said)) or "nothing"


def _told(one: Row) -> tuple[object, ...]:
    """Say who said what, or what nobody said."""
    word = f"{one['detector']} {one['severity']}".strip() or one["what"].replace("|", "/")[:200]
    return one["kind"], one["who"], one["task"], word


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(map(str, row)) for row in rows]
    return (
        "".join(f"| {x} |\n" for x in (" | ".join(header), " | ".join("---" for _ in header), *lines))
        if lines
        else "None.\n"
    )
