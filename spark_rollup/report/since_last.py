"""What has changed since the last audit of one output: incidents new, worse, still open, gone, not heard of. Not Spark.

An incident keeps its id from audit to audit, and is known again by its findings, too. It is gone only where that is
known: it is resolved, or its pods are seen and it is not found there. Else it is not heard of any more, and the next
audits go on to say so for `KEPT_US`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from agent.contract.codec import moment, rfc3339
from agent.contract.events import Severity, Status
from agent.contract.wording import named
from spark_rollup import __version__
from spark_rollup.config import parse_as_of
from spark_rollup.errors import UsageError
from spark_rollup.report.story import texts
from spark_rollup.spark.outputs import MARKER

FILE = "since_last.json"

KEPT_US = 35 * 86_400_000_000
"""So long an incident is named that is not heard of any more: four weekly audits, and a late one (microseconds)."""

Row = Mapping[str, object]
"""A row of `INCIDENT`; of the last audit's also `open_us`, when an audit saw it open; not heard of any more: `why`."""

_NAMES = (
    "id", "absorbed", "detector", "severity", "namespace", "application_id", "pods", "tasks", "findings",
)  # fmt: skip

Key = tuple[str, str]
"""Namespace, and an incident's id or a pod's name."""


class Change(StrEnum):
    """What an open incident is, beside the last audit."""

    NEW = "new"
    WORSE = "worse"
    STILL = "still open"


@dataclass(frozen=True, slots=True)
class Last:
    """What the last audit left: its time, its version, and what was open or not heard of then."""

    as_of_us: int
    version: str
    open: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What this audit knows of pods, as far as it decides whether something is gone."""

    pods: Mapping[Key, str]  # every pod that was heard of -> what puts it in doubt; empty = nothing
    not_asked: frozenset[tuple[str, Key | None]] = frozenset()
    """Detectors that are not asked, and on which pod; None = on any."""
    rules: Collection[str] = ()
    """Rules of the fleet: the ids of what they find alone change with the look-back."""


@dataclass(frozen=True, slots=True)
class SinceLast:
    """The comparison: of what is open now by namespace and id, and of what was open then and is not now.

    Critical and warning incidents only.
    """

    last: Last
    now: Mapping[Key, Change] = field(default_factory=dict)
    gone: Sequence[Row] = ()
    not_heard: Sequence[Row] = ()

    def counts(self) -> dict[str, int]:
        """Count by what changed."""
        found = {change.value: list(self.now.values()).count(change) for change in Change}
        return found | {"gone": len(self.gone), "not heard of any more": len(self.not_heard)}

    def in_words(self) -> str:
        """Say it in a line: `since the audit of 2026-11-20 06:00:12 UTC: 2 new, 3 still open, 1 gone`."""
        counted = [f"{number} {what}" for what, number in self.counts().items() if number]
        if not self.counts()[Change.NEW.value]:
            counted.insert(0, "nothing new")
        other = "" if self.last.version == __version__ else f" (by version {self.last.version})"
        return f"since the audit of {moment(self.last.as_of_us)}{other}: {', '.join(counted)}"


def read(output: Path) -> Last | None:
    """Read what the last audit wrote; None: there is none, or it cannot be read, which is no reason to fail."""
    try:
        marker = json.loads((output / MARKER).read_text(encoding="ascii"))
        as_of_us = parse_as_of(marker["watermark"])
        lines = (output / "incidents.jsonl").read_text(encoding="ascii").splitlines()
        rows = [_kept(row) | {"open_us": as_of_us} for row in map(json.loads, lines) if is_counted(row)]
        carried = output / FILE
        kept = json.loads(carried.read_text(encoding="ascii")) if carried.exists() else {}
        if kept.get("written") == marker["written"]:  # else of an audit before that one
            rows += [_kept(row) | {"open_us": int(row["open_us"])} for row in kept.get("not_heard", ())]
        return Last(as_of_us, str(marker["version"]), rows)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError):
        return None


def _kept(row: Row) -> dict[str, object]:
    """Take what is compared and shown of a row, which another version may have written.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    kept = {name: row[name] for name in _NAMES}
    _keys(kept)
    _rank(kept)
    return kept


def write(found: SinceLast | None, written: str, place: Path) -> None:
    """Write the file into a directory; the next audit reads from it what was not heard of any more."""
    told = {} if found is None else {
        "since": rfc3339(found.last.as_of_us), "since_version": found.last.version,
        "open": [{"namespace": key[0], "id": key[1], "change": x.value} for key, x in found.now.items()],
        "gone": found.gone, "not_heard": found.not_heard,
    }  # fmt: skip
    (place / FILE).write_text(json.dumps({"written": written, **told}) + "\n", encoding="ascii")


def is_counted(row: Row) -> bool:
    """Return whether an incident is open and no remark."""
    return row["status"] != Status.RESOLVED.value and _rank(row) > Severity.INFO.rank


def _rank(row: Row) -> int:
    return Severity(str(row["severity"])).rank


def compare(last: Last, rows: Sequence[Row], seen: Seen, as_of_us: int) -> SinceLast | None:
    """Compare what was open with the incidents of this audit; None: it is of an earlier time, so nothing follows."""
    if as_of_us < last.as_of_us:
        return None
    same = _pairs(last.open, rows, seen.rules)
    was: dict[int, list[Row]] = {}
    gone, lost = [], []
    for old, found in zip(last.open, same, strict=True):
        for index in found:
            was.setdefault(index, []).append(old)
        if any(is_counted(rows[index]) for index in found):
            continue
        why = _not_asked(old, seen) or ("" if found else _unknown(old, seen))
        if not why:
            ended = max(
                (str(rows[index]["ended"]) for index in found if rows[index].get("ended")), default=""
            )
            gone.append({**old, "why": f"ended {ended[:19].replace('T', ' ')} UTC"} if ended else old)
        elif as_of_us - int(str(old["open_us"])) <= KEPT_US:
            lost.append({**old, "why": why})
    now = {
        (str(row["namespace"]), str(row["id"])): _change(row, was.get(index, ()))
        for index, row in enumerate(rows) if is_counted(row)
    }  # fmt: skip
    return SinceLast(last, now, gone, lost)


def in_a_line(row: Row) -> str:
    """Name an incident that is not open any more, and say when it ended, or why it is not known to be gone."""
    parts = (row["namespace"], row["application_id"], named(texts(row["tasks"])))
    where = "/".join(str(x) for x in parts if x)
    pods = f" on {named(texts(row['pods']))}" if row["pods"] else ""
    why = f"; {row['why']}" if row.get("why") else ""
    return f"{row['detector']} {where}{pods} ({row['id']}){why}"


def _pairs(before: Sequence[Row], now: Sequence[Row], rules: Collection[str]) -> list[list[int]]:
    """Find, for each incident of then, those of now that are the same: by ids, else what a rule says of one place."""
    of_key: dict[Key, list[int]] = {}
    for index, row in enumerate(now):
        for key in _keys(row):
            of_key.setdefault(key, []).append(index)
    found = [sorted({index for key in _keys(row) for index in of_key.get(key, ())}) for row in before]
    taken = set().union(*found)
    free: dict[object, list[int]] = {}
    for index, row in enumerate(now):
        if index not in taken and str(row["detector"]) in rules:
            free.setdefault(_place(row), []).append(index)
    for row, same in zip(before, found, strict=True):
        left = [] if same else free.get(_place(row), [])
        pods = set(texts(row["pods"]))
        alike = [x for x in left if pods == (other := set(texts(now[x]["pods"]))) or pods & other][:1]
        for index in alike:
            same.append(index)
            left.remove(index)
    return found


def _keys(row: Row) -> set[Key]:
    """List the ids by which an incident is known again: what is only evidence may be that of another one, too."""
    rows = row["findings"] if isinstance(row["findings"], list) else []
    own = [x["id"] for x in rows if x["detector"] == row["detector"]]
    return {(str(row["namespace"]), str(id_)) for id_ in (row["id"], *texts(row["absorbed"]), *own)}


def _place(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("namespace", "application_id", "detector", "tasks"))


def _change(row: Row, was: Sequence[Row]) -> Change:
    if not was:
        return Change.NEW
    tasks = {task for x in was for task in texts(x["tasks"])}
    grew = bool(tasks) and not tasks.issuperset(texts(row["tasks"]))
    return Change.WORSE if grew or _rank(row) > max(map(_rank, was)) else Change.STILL


def _not_asked(row: Row, seen: Seen) -> str:
    """Say where an incident is not looked for: an agent closes what it does not look for any more."""
    space, detector = str(row["namespace"]), str(row["detector"])
    off = [pod for pod in _pods(row, seen) if (detector, (space, pod)) in seen.not_asked]
    if off or (detector, None) in seen.not_asked:
        return f"{detector} is not looked for{f' on {named(off)}' if off else ''}"
    return ""


def _pods(row: Row, seen: Seen) -> list[str]:
    return texts(row["pods"]) or [pod for where, pod in seen.pods if where == row["namespace"]]


def _unknown(row: Row, seen: Seen) -> str:
    """Say why it is not known that an incident that is not found is gone; empty: it is gone."""
    space, pods = str(row["namespace"]), _pods(row, seen)
    absent = [pod for pod in pods if (space, pod) not in seen.pods]
    if absent or not pods:
        return f"no word of {named(absent) if absent else 'its pods'} in this audit"
    return next((f"{pod}: {seen.pods[space, pod]}" for pod in pods if seen.pods[space, pod]), "")
