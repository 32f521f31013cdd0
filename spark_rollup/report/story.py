"""One task's story for a terminal, from rows: the verdict first, then what happened; runs of the same are one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.contract.codec import rfc3339
from agent.contract.events import Change, Level, Severity, Status

Row = Mapping[str, object]

MAX_LINES = 400  # of a task's story on a terminal; the middle is left out and counted

_FREQUENT = ("checkpoint", "size")  # lanes of marks that come again and again


def about_task(rows: Iterable[Row], pods: Sequence[str]) -> list[Row]:
    """Keep what concerns a task: what is said of it, and what is open about its whole application on its pods."""
    return [row for row in rows if row["task_id"] is not None or _concerns_all(row, pods)]


def _concerns_all(row: Row, pods: Sequence[str]) -> bool:
    urgent = row["status"] == Status.OPEN.value and row["severity"] != Severity.INFO.value
    there = set(texts(row.get("pods"))) or {str(row["pod"])}
    return urgent and row["level"] != Level.SELF.value and bool(there & set(pods))


def headline(
    address: str, pods: Sequence[str], as_of_us: int, verdicts: Iterable[Row], said: Iterable[Row]
) -> str:
    """Say in one line what is wrong with a task: the worst that a rule finds, or what an agent says if that is worse.

    What a rule refutes is not wrong, whatever its agent says.
    """
    where = f"{address} on {', '.join(sorted(pods))}, as of {moment(as_of_us)}"
    found = list(verdicts)
    refuted = {name for row in found for name in texts(row.get("refutes"))}
    left = [row for row in said if row.get("finding_id") not in refuted]
    of_rules, of_agents = _worst(found), _worst(left)
    if of_agents is not None and (of_rules is None or _rank(of_agents) > _rank(of_rules)):
        return f"{_words_of(of_agents)} (reported by its agent only): {where}"
    return f"{_words_of(of_rules)}: {where}" if of_rules is not None else f"no open finding: {where}"


def _worst(rows: Iterable[Row]) -> Row | None:
    return max((row for row in rows if row["status"] == Status.OPEN.value), key=_rank, default=None)


def _words_of(row: Row) -> str:
    return f"{row['severity']}, {row['confidence']}: {row['detector']}"


def texts(value: object) -> list[str]:
    """Read a list of texts from a row; null is empty."""
    return [str(one) for one in value] if isinstance(value, list) else []


def some(names: Sequence[str], limit: int = 20) -> str:
    """List names; behind the first ones it is a number."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def pod_name(row: Row, several: bool) -> str:
    """Name a pod, with its namespace where there are several."""
    return f"{row['namespace'] or '-'}/{row['pod']}" if several else str(row["pod"])


def size(value: object) -> str:
    """Write a number of bytes: `812 B`, `3 GiB`."""
    amount, units = float(str(value)), ["B", "KiB", "MiB", "GiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.0f} {units[0]}"


def verdict_lines(rows: Iterable[Row]) -> list[str]:
    """List what rules find, the worst first, each with what to do next."""
    lines = []
    for row in sorted(rows, key=_order):
        lines.append(
            f"  fleet: {row['severity']} {row['confidence']} {row['detector']} [{row['status']}]: {row['summary']}"
        )
        if row["status"] == Status.OPEN.value:
            lines.append(f"         -> {row['next_action']}")
    return lines or ["  fleet: no finding"]


def said_lines(rows: Iterable[Row]) -> list[str]:
    """List what agents say, the worst first."""
    return [
        f"  agent on {row['pod']}: {row['severity']} {row['confidence']} {row['detector']} [{row['status']}]: "
        f"{row['summary']}"
        for row in sorted(rows, key=_order)
    ]


def story_lines(steps: Iterable[Row]) -> list[str]:
    """List what happened.

    A run of the same event on a pod is one line; it ends where anything else happens to the task on any pod.
    """
    runs: list[_Run] = []
    going: dict[tuple[object, ...], _Run] = {}
    for row in _news(steps):
        key = (row["pod"], row["lane"], row["store"], _words(row))
        is_frequent = row["lane"] in _FREQUENT
        if not is_frequent:
            going = {known: run for known, run in going.items() if known == key}
        if key in going:
            going[key].add(row)
            continue
        going[key] = _Run([row])
        runs.append(going[key])
    lines = [run.line() for run in runs]
    if len(lines) > MAX_LINES:
        half = MAX_LINES // 2
        lines = [*lines[:half], f"  ... {len(lines) - 2 * half} lines left out", *lines[-half:]]
    return lines


def moment(at_us: object) -> str:
    """Write a time with date, milliseconds and zone."""
    return "?" if at_us is None else f"{rfc3339(int(str(at_us)))[:23].replace('T', ' ')} UTC"


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows that say the same, by time."""

    rows: list[Row]

    def add(self, row: Row) -> None:
        """Take one more, unless it is a repetition of the last."""
        if row != self.rows[-1]:
            self.rows.append(row)

    def line(self) -> str:
        """Write it; of several, the first and the last number and time."""
        first, last = self.rows[0], self.rows[-1]
        text = _words(first, last)
        if len(self.rows) > 1:
            end_us = last["from_us"] if last["to_us"] is None else last["to_us"]
            text = f"{len(self.rows)} x {text}, until {moment(end_us)}"
        elif until := _until(first):
            text = f"{text} until {until}{_reason(first)}"
        return f"  {moment(first['from_us'])}  {first['pod']}  {text}"


def _words(first: Row, last: Row | None = None) -> str:
    """Say what a run of rows is about; without its last row, only what kind of event it is."""
    lane, store = str(first["lane"]), first["store"]
    of_store = f", store {store}" if store else ""
    if lane == "checkpoint":
        return f"checkpoint written{_span(' at offset ', 'offset', first, last)}{of_store}"
    if lane == "size":
        numbers = _span(", puts ", "puts", first, last) + _span(", offset ", "offset", first, last)
        return f"data flushed{of_store}{numbers}"
    known = {
        "holder": "holds the task",
        "cleaner": "its cleaner has the lock",
        "process": "a process of the application is seen",
        "unknown": "not watched",
        "incarnation": f"store {store}, {first['detail']}",
    }
    if lane in known:
        return known[lane]
    change, _, rest = str(first["detail"]).partition(" ")
    return f"{change.replace('-', ' ') if change in set(Change) else change}{f' {rest}' if rest else ''}{of_store}"


def _span(before: str, name: str, first: Row, last: Row | None) -> str:
    if last is None or first[name] is None:
        return ""
    more = f" to {last[name]}" if last[name] not in (None, first[name]) else ""
    return f"{before}{first[name]}{more}"


def _until(row: Row) -> str:
    if row["detail"] == "lasting":
        return "the last reading"
    return moment(row["to_us"]) if row["to_us"] is not None else ""


def _reason(row: Row) -> str:
    return f": {row['detail']}" if row["lane"] == "unknown" else ""


def _news(steps: Iterable[Row]) -> Iterable[Row]:
    """Leave out readings in which no more was flushed than in the one before."""
    puts: dict[tuple[object, ...], object] = {}
    for row in steps:
        if row["lane"] == "size":
            key = (row["pod"], row["store"])
            known, puts[key] = puts.get(key), row["puts"]
            if row["puts"] is None or row["puts"] == known:
                continue
        yield row


def _rank(row: Row) -> int:
    return Severity(str(row["severity"])).rank


def _order(row: Row) -> tuple[bool, int, str]:
    return row["status"] != Status.OPEN.value, -_rank(row), str(row["detector"])
