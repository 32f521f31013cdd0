"""The timelines of tasks that have a finding: inline SVG, a row per pod, one time axis per application."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.contract.codec import parse_us
from agent.contract.markup import escape, number, plural
from spark_rollup.report.page import text
from spark_rollup.report.page.data import Links, PageData, Row, Rows, TaskKey, pod_key, task_key, tasks_of
from spark_rollup.report.page.text import anchor, clock, day, link
from spark_rollup.report.story import some

TIMELINES_BYTES = 1_250_000  # what all drawings may take

WIDTH, LABEL, MARGIN = 1060, 128, 14
ROW, AXIS, CURVE, BAR = 62, 26, 38, 8
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400)
_INTERVALS = {"holder": ("hold", "held"), "cleaner": ("cleaner", "the cleaner had the lock")}
_MARKS = {
    "created": '<path class="made" d="M{x} 7l5 9h-10z">{title}</path>',
    "deleted": '<path class="gone" d="M{x} 8m-4 0l8 8m0 -8l-8 8">{title}</path>',
    "checkpoint": '<path class="tick" d="M{x} 46v8">{title}</path>',
}


@dataclass(frozen=True, slots=True)
class Axis:
    """The shared time axis, microseconds since the epoch."""

    from_us: int
    to_us: int

    def x(self, at_us: int) -> float:
        """Place a time, clipped to the axis."""
        share = (min(max(at_us, self.from_us), self.to_us) - self.from_us) / max(self.to_us - self.from_us, 1)
        return round(LABEL + share * (WIDTH - LABEL - MARGIN), 1)

    def covers(self, row: Row) -> bool:
        """Return whether anything of an interval or a mark is on the axis."""
        from_us = row["from_us"]
        end_us = from_us if row["lane"] in _MARKS else self.to_us if row["to_us"] is None else row["to_us"]
        return from_us <= self.to_us and end_us >= self.from_us


def section(data: PageData, links: Links) -> tuple[str, frozenset[TaskKey]]:
    """Draw tasks that have a finding, applications with the worst finding first, as far as there is room; say which."""
    rows, findings = _by_task(data.timelines), _by_task(data.findings)
    places: dict[tuple[str, str], list[TaskKey]] = defaultdict(list)
    for key in findings:
        if key in rows:
            places[key[:2]].append(key)
    axes = {at: axis for at, keys in places.items() if (axis := _axis(keys, rows, findings)) is not None}
    wanted = [key for at in axes for key in sorted(places[at], key=text.natural)]
    title = ("timelines", "Task timelines")
    if not wanted:
        return text.section(*title, "No task has a finding, so none is drawn."), frozenset()
    unknown = [row for row in data.timelines if row["lane"] == "unknown"]
    about = links.about(data.incidents, tasks_of)

    def figure(key: TaskKey) -> str:
        words = some(about.get(key, []), 4) or plural(len(findings[key]), "finding")
        caption = f"{link(anchor('t', key), data.called(key))} <small>{words}</small>"
        return _figure(key, rows[key], unknown, findings[key], axes[key[:2]], caption)

    drawn = text.fitting(map(figure, wanted), TIMELINES_BYTES)
    where = " with findings; all are in the table <code>timelines</code>."
    lead = (
        "One row per pod. The line is the changelog offset that the copy claims, the area what was really put into it: "
        "a line far above its area is a copy with a hole; an area that rises above a line that stays behind holds puts "
        "beyond its checkpoint, and after a kill the next start may trust them, committed or not (KAFKA-20685)."
    )
    body = LEGEND + text.paged(drawn, "tasks") + text.rest(len(findings) - len(drawn), "task", where)
    return text.section(*title, lead, body), frozenset(wanted[: len(drawn)])


def _by_task(rows: Rows) -> Mapping[TaskKey, list[Row]]:
    found: dict[TaskKey, list[Row]] = {}
    for row in rows:
        if row["task_id"] is not None:
            found.setdefault(task_key(row), []).append(row)
    return found


def _axis(
    keys: Sequence[TaskKey], rows: Mapping[TaskKey, Rows], findings: Mapping[TaskKey, Rows]
) -> Axis | None:
    """Choose the time that is worth drawing: from the first to the last thing that happened, with some air.

    The end of an interval that lasted until the last reading is no event: a quiet hour must not squash the story.
    """
    opened = (parse_us(row["opened_at"]) for key in keys for row in findings[key])
    times = [at_us for at_us in opened if at_us is not None]
    known: dict[object, object] = {}
    for row in (row for key in keys for row in rows[key]):
        lane = row["lane"]
        copy, measured = (row["task_id"], row["pod"], row["store"]), (row["offset"], row["puts"])
        if lane in _INTERVALS or lane in _MARKS or (lane == "size" and known.get(copy, measured) != measured):
            times.append(row["from_us"])
        if lane == "size":
            known[copy] = measured
        if lane in _INTERVALS and row["to_us"] is not None and row["detail"] != "lasting":
            times.append(row["to_us"])
    if not times:
        return None
    air = max((max(times) - min(times)) // 16, 2_000_000)
    return Axis(min(times) - air, max(times) + air)


def _figure(key: TaskKey, rows: Rows, unknown: Rows, findings: Rows, axis: Axis, caption: str) -> str:
    """Draw one task: a row per pod with who held it, what was on disk and what was not seen."""
    pods = sorted({str(row["pod"]) for row in (*rows, *findings) if row["pod"]})
    height = AXIS + ROW * len(pods) + 4
    top = max((max(row["offset"] or 0, row["puts"] or 0) for row in rows), default=0)
    parts = [*_ticks(axis, height)]
    for index, pod in enumerate(pods):
        own = [row for row in rows if row["pod"] == pod and (row["lane"] == "size" or axis.covers(row))]
        blind = [
            row for row in unknown
            if pod_key(row) == (key[0], pod) and row["task_id"] in (None, key[2]) and axis.covers(row)
        ]  # fmt: skip
        flags = [row for row in findings if row["pod"] == pod]
        drawn = "".join(_row(pod, own, blind, flags, axis, top))
        parts.append(f'<g transform="translate(0 {AXIS + index * ROW})">{drawn}</g>')
    return (
        f'<figure id="{anchor("t", key)}"{text.marks(key[0], [key[1]], pods)}><figcaption>{caption}'
        f'</figcaption><svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="Timeline across {len(pods)} pods">{"".join(parts)}</svg></figure>'
    )


def _row(pod: str, own: Rows, blind: Rows, flags: Rows, axis: Axis, top: int) -> Iterator[str]:
    short = pod if len(pod) <= 17 else f"{pod[:7]}\u2026{pod[-9:]}"
    yield f'<path class="grid" d="M0 0H{WIDTH}"/><text class="pod" x="0" y="28">{escape(short)}{_title(pod)}</text>'
    sizes = [row for row in own if row["lane"] == "size" and None not in (row["puts"], row["offset"])]
    last = max(sizes, key=lambda row: row["from_us"], default=None)
    held = f"{number(last['puts'])} puts at {number(last['offset'])}" if last is not None else ""
    yield f'<text x="0" y="44">{held}</text>'
    for row in blind:
        box = f'y="1" height="{ROW - 2}" {_extent(row, axis)}'
        title = _title(f"not watched: {row['detail']}")
        yield f'<g>{title}<rect class="unwatched" {box}/><rect fill="url(#hatch)" {box}/></g>'
    yield _curves(own, axis, top)
    for row in own:
        if row["lane"] in _INTERVALS:
            style, who = _INTERVALS[str(row["lane"])]
            until = "the last reading" if row["detail"] == "lasting" else clock(row["to_us"])
            title = _title(f"{who} from {clock(row['from_us'])} to {until}")
            yield f'<rect class="{style}" y="46" height="{BAR}" rx="2" {_extent(row, axis)}>{title}</rect>'
    drawn: dict[tuple[object, int], str] = {}
    for row in own:
        if row["lane"] in _MARKS:
            at_us, x = row["from_us"], axis.x(row["from_us"])
            title = _title(f"{clock(at_us, millis=True)} {row['detail']}")
            # thousands of marks look like one anyway
            drawn.setdefault((row["lane"], int(x // 2)), _MARKS[str(row["lane"])].format(x=x, title=title))
    yield from drawn.values()
    for row in flags:
        if (opened_us := parse_us(row["opened_at"])) is not None:
            x, severity = axis.x(opened_us), row["severity"]
            title = _title(f"{row['detector']}: {row['summary']}"[:300])
            line = f'<path class="flag {severity}" d="M{x} 2V{ROW - 2}"/>'
            yield f'<g>{title}{line}<path class="pin {severity}" d="M{x} 2h9l-3 4l3 4h-9z"/></g>'


def _title(words: str) -> str:
    return f"<title>{escape(words)}</title>"


def _extent(row: Row, axis: Axis) -> str:
    left, right = axis.x(row["from_us"]), axis.x(row["to_us"])
    return f'x="{left}" width="{max(right - left, 2):.1f}"'


def _ticks(axis: Axis, height: int) -> Iterator[str]:
    seconds = (axis.to_us - axis.from_us) / 1_000_000
    long_s = _STEPS_S[-1] * (1 + int(seconds // 777_600))
    step_us = next((step for step in _STEPS_S if seconds / step <= 9), long_s) * 1_000_000
    yield f'<text x="0" y="14">{day(axis.from_us)}, UTC</text>'
    for at_us in range(-(-axis.from_us // step_us) * step_us, axis.to_us + 1, step_us):
        x = axis.x(at_us)
        yield f'<path class="grid" d="M{x} {AXIS - 6}V{height}"/>'
        yield f'<text x="{x}" y="14" text-anchor="middle">{clock(at_us)}</text>'


def _curves(rows: Rows, axis: Axis, top: int) -> str:
    """Draw what the copy claims (offset, a line) over what it holds (puts, an area); both end with a deletion."""
    base = ROW - BAR - 11
    claims, holds = [], []
    offset = puts = 0
    steps = [row for row in rows if row["lane"] in ("size", *_MARKS)]
    for row in sorted(steps, key=lambda row: (row["from_us"], str(row["lane"]))):
        if row["lane"] in ("deleted", "created"):
            offset, puts = 0 if row["lane"] == "deleted" else offset, 0
        else:
            offset = row["offset"] if row["offset"] is not None else offset
            puts = row["puts"] if row["puts"] is not None else puts
        x = axis.x(row["from_us"])
        claims.append((x, base - max(offset, 0) / max(top, 1) * CURVE))
        holds.append((x, base - puts / max(top, 1) * CURVE))
    if not claims or top <= 0:
        return ""
    end = axis.x(axis.to_us)
    return (
        f'<path class="puts" d="{_stairs(holds, base, end)}L{end} {base}Z">'
        "<title>area: puts that the store has flushed</title></path>"
        f'<path class="offset" d="{_stairs(claims, base, end)}">'
        "<title>line: changelog offset that the copy claims</title></path>"
    )


def _stairs(points: Sequence[tuple[float, float]], base: int, end: float) -> str:
    path, last = f"M{points[0][0]} {base}", float(base)
    for x, height in points:
        if height != last:
            path += f"H{x}V{height:.1f}"
        last = height
    return f"{path}H{max(end, points[-1][0])}"


HATCH = (
    '<svg width="0" height="0" aria-hidden="true" class="defs"><defs>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="blind" d="M0 0V6"/></pattern></defs></svg>'
)
"""Once per page: the pattern of unwatched time."""

_KEYS = {
    "holds the task": '<rect class="hold" x="0" y="4" width="26" height="7" rx="2"/>',
    "cleaner has the lock": '<rect class="cleaner" x="1" y="4" width="24" height="7" rx="2"/>',
    "checkpoint": '<rect class="hold" x="0" y="4" width="26" height="7"/><path class="tick" d="M8 4v7M17 4v7"/>',
    "offset claimed": '<path class="offset" d="M0 10h9V3h17"/>',
    "puts really there": '<path class="puts" d="M0 13V10h9V4h17v9z"/>',
    "made": '<path class="made" d="M13 2l5 9h-10z"/>',
    "deleted": '<path class="gone" d="M9 3l8 8m0 -8l-8 8"/>',
    "finding opens": '<path class="flag critical" d="M8 0v14"/><path class="pin critical" d="M8 1h9l-3 4l3 4h-9z"/>',
    "no agent watched": '<rect fill="url(#hatch)" width="26" height="14"/>',
}

LEGEND = (
    '<div class="legend">'
    + "".join(
        f'<span><svg viewBox="0 0 26 14" aria-hidden="true">{shape}</svg>{text}</span>'
        for text, shape in _KEYS.items()
    )
    + "</div>"
)
"""What each shape means."""
