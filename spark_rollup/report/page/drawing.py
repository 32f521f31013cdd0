"""Inline SVG: the life of one task across pods on one time axis, and one strip per pod of how well it was watched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spark_rollup.report.page.data import Row
from spark_rollup.report.page.text import clock, day, escape, integer

WIDTH, LABEL, MARGIN = 1060, 128, 14
ROW, AXIS, CURVE, BAR = 62, 26, 38, 8
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400)
_INTERVALS = ("holder", "cleaner")
_MARKS = ("created", "deleted", "checkpoint")


@dataclass(frozen=True, slots=True)
class Axis:
    """The shared time axis, microseconds since the epoch."""

    from_us: int
    to_us: int

    def x(self, at_us: int) -> float:
        """Place a time, clipped to the axis."""
        share = (min(max(at_us, self.from_us), self.to_us) - self.from_us) / max(self.to_us - self.from_us, 1)
        return round(LABEL + share * (WIDTH - LABEL - MARGIN), 1)

    def covers(self, at_us: int) -> bool:
        """Return whether a time is on the axis."""
        return self.from_us <= at_us <= self.to_us


@dataclass(frozen=True, slots=True)
class Flag:
    """A finding's opening on a pod's row."""

    pod: str
    at_us: int
    severity: str
    title: str


def axis_of(rows: Iterable[Row], flags: Iterable[Flag]) -> Axis | None:
    """Choose the time that is worth drawing: from the first to the last thing that happened, with some air.

    The end of an interval that lasted until the last reading is no event: a quiet hour must not squash the story.
    """
    times = [flag.at_us for flag in flags]
    known: dict[object, object] = {}
    for row in rows:
        lane = row["lane"]
        if lane == "size":
            copy = (row["task_id"], row["pod"], row["store"])
            measured = (row["offset"], row["puts"])
            if known.get(copy, measured) != measured:
                times.append(integer(row["from_us"]))
            known[copy] = measured
        if lane in _INTERVALS or lane in _MARKS:
            times.append(integer(row["from_us"]))
        if lane in _INTERVALS and row["to_us"] is not None and row["detail"] != "lasting":
            times.append(integer(row["to_us"]))
    if not times:
        return None
    low, high = min(times), max(times)
    air = max((high - low) // 16, 2_000_000)
    return Axis(low - air, high + air)


def task_drawing(
    rows: Sequence[Row], unknown: Sequence[Row], pods: Sequence[str], flags: Sequence[Flag], axis: Axis
) -> str:
    """Draw one task: a row per pod with who held it, what was on disk and what was not seen."""
    height = AXIS + ROW * len(pods) + 4
    top = max((max(integer(row["offset"]), integer(row["puts"])) for row in rows), default=0)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="Timeline across {len(pods)} pods">',
        *_ticks(axis, height),
    ]
    for index, pod in enumerate(pods):
        y = AXIS + index * ROW
        own = [row for row in rows if row["pod"] == pod]
        parts.append(f'<line class="grid" x1="0" x2="{WIDTH}" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text class="pod" x="0" y="{y + 28}">{escape(_short(pod))}<title>{escape(pod)}</title></text>'
        )
        parts.append(f'<text x="0" y="{y + 44}">{escape(_last_size(own))}</text>')
        parts += [_unwatched(row, y, axis) for row in unknown if row["pod"] == pod and _overlaps(row, axis)]
        parts += _curves(own, y, axis, top)
        parts += [_bar(row, y, axis) for row in own if row["lane"] in _INTERVALS and _overlaps(row, axis)]
        parts += _marks(own, y, axis)
        parts += [_flag(flag, y, axis) for flag in flags if flag.pod == pod and axis.covers(flag.at_us)]
    return "".join(parts) + "</svg>"


def _short(pod: str) -> str:
    return pod if len(pod) <= 17 else f"{pod[:7]}\u2026{pod[-9:]}"


def _last_size(rows: Sequence[Row]) -> str:
    """Say in a few words what the copy held at the last reading."""
    readings = [
        row for row in rows if row["lane"] == "size" and row["puts"] is not None and row["offset"] is not None
    ]
    if not readings:
        return ""
    last = max(readings, key=lambda row: integer(row["from_us"]))
    return f"{integer(last['puts']):,} puts at {integer(last['offset']):,}".replace(",", "\u202f")


def _overlaps(row: Row, axis: Axis) -> bool:
    return integer(row["from_us"]) <= axis.to_us and (
        row["to_us"] is None or integer(row["to_us"]) >= axis.from_us
    )


def _ticks(axis: Axis, height: int) -> list[str]:
    seconds = (axis.to_us - axis.from_us) / 1_000_000
    step_us = (
        next((step for step in _STEPS_S if seconds / step <= 9), _STEPS_S[-1] * (1 + int(seconds // 777_600)))
        * 1_000_000
    )
    at_us = -(-axis.from_us // step_us) * step_us
    parts = [f'<text x="0" y="14">{day(axis.from_us)}, UTC</text>']
    while at_us <= axis.to_us:
        x = axis.x(at_us)
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{AXIS - 6}" y2="{height}"/>')
        parts.append(f'<text x="{x}" y="14" text-anchor="middle">{clock(at_us)}</text>')
        at_us += step_us
    return parts


def _unwatched(row: Row, y: int, axis: Axis) -> str:
    left, right = axis.x(integer(row["from_us"])), axis.x(integer(row["to_us"]))
    width = max(right - left, 2)
    title = f"not watched: {row['detail']}"
    box = f'x="{left}" y="{y + 1}" width="{width:.1f}" height="{ROW - 2}"'
    return f'<g><title>{escape(title)}</title><rect class="unwatched" {box}/><rect fill="url(#hatch)" {box}/></g>'


def _bar(row: Row, y: int, axis: Axis) -> str:
    left, right = axis.x(integer(row["from_us"])), axis.x(integer(row["to_us"]))
    who = "the cleaner had the lock" if row["lane"] == "cleaner" else "held"
    until = "the last reading" if row["detail"] == "lasting" else clock(integer(row["to_us"]))
    style = "cleaner" if row["lane"] == "cleaner" else "hold"
    title = f"{who} from {clock(integer(row['from_us']))} to {until}"
    box = f'x="{left}" y="{y + ROW - BAR - 8}" width="{max(right - left, 2):.1f}" height="{BAR}"'
    return f'<rect class="{style}" {box} rx="2"><title>{escape(title)}</title></rect>'


def _curves(rows: Sequence[Row], y: int, axis: Axis, top: int) -> list[str]:
    """Draw what the copy claims (offset, a line) over what it holds (puts, an area); both end with a deletion."""
    if top <= 0:
        return []
    base = y + ROW - BAR - 11
    points: list[tuple[float, float, float]] = []
    offset = puts = 0
    steps = [row for row in rows if row["lane"] in ("size", "checkpoint", "created", "deleted")]
    for row in sorted(steps, key=lambda row: (integer(row["from_us"]), str(row["lane"]))):
        if row["lane"] == "deleted":
            offset = puts = 0
        elif row["lane"] == "created":
            puts = 0
        else:
            offset = integer(row["offset"]) if row["offset"] is not None else offset
            puts = integer(row["puts"]) if row["puts"] is not None else puts
        points.append(
            (axis.x(integer(row["from_us"])), base - max(offset, 0) / top * CURVE, base - puts / top * CURVE)
        )
    if not points:
        return []
    end = axis.x(axis.to_us)
    return [
        f'<path class="puts" d="{_steps([(x, low) for x, _, low in points], base, end)}L{end} {base}Z">'
        "<title>area: puts that the store has flushed</title></path>",
        f'<path class="offset" d="{_steps([(x, high) for x, high, _ in points], base, end)}">'
        "<title>line: changelog offset that the copy claims</title></path>",
    ]


def _steps(points: Sequence[tuple[float, float]], base: int, end: float) -> str:
    """Join points as stairs, one per pixel column at most."""
    path, last_x, last_y = f"M{points[0][0]} {base}", points[0][0], float(base)
    for x, height in points:
        if height != last_y:
            path += f"L{x} {last_y:.1f}L{x} {height:.1f}"
        last_x, last_y = x, height
    return path + f"L{max(end, last_x)} {last_y:.1f}"


def _marks(rows: Sequence[Row], y: int, axis: Axis) -> list[str]:
    middle, bar = y + 12, y + ROW - BAR - 8
    drawn: dict[tuple[str, int], str] = {}
    for row in rows:
        lane, at_us = str(row["lane"]), integer(row["from_us"])
        if lane not in _MARKS or not axis.covers(at_us):
            continue
        x = axis.x(at_us)
        words = f"{clock(at_us, millis=True)} {row['detail']}"
        title = f"<title>{escape(words)}</title>"
        if lane == "checkpoint":
            shape = f'<line class="tick" x1="{x}" x2="{x}" y1="{bar}" y2="{bar + BAR}">{title}</line>'
        elif lane == "created":
            shape = f'<path class="made" d="M{x} {middle - 5}l5 9h-10z">{title}</path>'
        else:
            shape = f'<path class="gone" d="M{x - 4} {middle - 4}l8 8m0 -8l-8 8">{title}</path>'
        drawn.setdefault((lane, int(x // 2)), shape)  # thousands of marks look like one anyway
    return list(drawn.values())


def _flag(flag: Flag, y: int, axis: Axis) -> str:
    x, severity = axis.x(flag.at_us), escape(flag.severity)
    line = f'<line class="flag {severity}" x1="{x}" x2="{x}" y1="{y + 2}" y2="{y + ROW - 2}"/>'
    pin = f'<path class="pin {severity}" d="M{x} {y + 2}h9l-3 4l3 4h-9z"/>'
    return f"<g><title>{escape(flag.title)}</title>{line}{pin}</g>"


def coverage_strip(unknown: Sequence[Row], from_us: int, to_us: int) -> str:
    """Draw one pod's time: watched and not."""
    scale = 220 / max(to_us - from_us, 1)
    parts = ['<svg class="strip" viewBox="0 0 220 12" role="img" aria-label="watched time">',
             '<rect class="seen" x="0" y="3" width="220" height="6" rx="3"/>']  # fmt: skip
    for row in unknown:
        left = max(integer(row["from_us"]) - from_us, 0) * scale
        width = max((integer(row["to_us"]) - max(integer(row["from_us"]), from_us)) * scale, 1.5)
        title = f"{clock(integer(row['from_us']))} to {clock(integer(row['to_us']))}: {row['detail']}"
        parts.append(
            f'<rect class="unseen" x="{left:.1f}" y="1" width="{min(width, 220 - left):.1f}" height="10">'
            f"<title>{escape(title)}</title></rect>"
        )
    return "".join(parts) + "</svg>"


HATCH = (
    '<svg width="0" height="0" aria-hidden="true" class="defs"><defs>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="blind" x1="0" y1="0" x2="0" y2="6"/></pattern></defs></svg>'
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
