"""The trend by Streams release: one line per release, and when what is known of it began, on one time axis."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from spark_rollup.report.page.data import SEVERITIES, PageData, Row
from spark_rollup.report.page.text import clock, day, escape, first_seen_us, parse_us

BINS = 32
"""How many bars the covered time is cut into."""

_BAR, _HEIGHT = 6, 24


def releases(data: PageData) -> str:
    """Render applications, tasks that are hit, open findings, and when findings opened, by release."""
    if not data.releases:
        return ""
    release = {(row["namespace"], row["application_id"]): str(row["release"]) for row in data.releases}
    applications = Counter(release.values())
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in data.findings:
        where = release.get((row["namespace"], row["application_id"]))
        if where is not None:
            rows[where].append(row)
    from_us, to_us = first_seen_us(data), data.as_of_us
    bins = {version: _bins(rows[version], from_us, to_us) for version in applications}
    top = max((sum(one.values()) for cut in bins.values() for one in cut), default=0)
    lines = "".join(
        _line(version, applications[version], rows[version], _bars(bins[version], top, from_us, to_us))
        for version in sorted(applications, key=_by_release)
    )
    heads = "".join(f'<th scope="col" class="n">{level}</th>' for level in SEVERITIES)
    until = clock(to_us) if day(to_us) == day(from_us) else f"{day(to_us)} {clock(to_us)}"
    return (
        '<h2 id="releases">By Kafka Streams release</h2>'
        '<p class="lead">Open findings, and when those of the covered time began: '
        f"{day(from_us)} {clock(from_us)} to {until}, resolved ones included.</p>"
        '<div class="scroll"><table class="stack"><thead><tr><th scope="col">Release</th>'
        f'<th scope="col" class="n">Applications</th><th scope="col" class="n">Tasks hit</th>{heads}'
        f'<th scope="col">Began</th></tr></thead><tbody>{lines}</tbody></table></div>'
    )


def _line(version: str, applications: int, rows: Sequence[Row], bars: str) -> str:
    alive = [row for row in rows if row["status"] == "open"]
    found = Counter(str(row["severity"]) for row in alive)
    hit = {
        (row["namespace"], row["application_id"], row["task_id"])
        for row in alive
        if row["severity"] == SEVERITIES[0]
    }
    counts = "".join(f'<td class="n" data-name="{x}">{found[x] or ""}</td>' for x in SEVERITIES)
    return (
        f'<tr><td class="k">{escape(version)}</td><td class="n" data-name="applications">{applications}</td>'
        f'<td class="n" data-name="tasks hit">{len(hit) or ""}</td>{counts}<td class="k">{bars}</td></tr>'
    )


def _bins(rows: Sequence[Row], from_us: int, to_us: int) -> list[Counter[str]]:
    """Count findings by severity and by when they opened; what began earlier is in the first bar."""
    cut: list[Counter[str]] = [Counter() for _ in range(BINS)]
    for row in rows:
        at_us = parse_us(row["opened_at"])
        if at_us is not None:
            place = (at_us - from_us) * BINS // max(to_us - from_us, 1)
            cut[min(max(place, 0), BINS - 1)][str(row["severity"])] += 1
    return cut


def _bars(cut: Sequence[Counter[str]], top: int, from_us: int, to_us: int) -> str:
    """Draw stacked bars, all releases on one scale; a single finding is always visible."""
    total = sum((one for one in cut), Counter[str]())
    words = ", ".join(f"{total[level]} {level}" for level in SEVERITIES if total[level]) or "nothing"
    width = BINS * _BAR
    parts = [
        f'<svg class="bars" viewBox="0 0 {width} {_HEIGHT}" role="img" aria-label="began: {words}">',
        f'<line class="grid" x1="0" x2="{width}" y1="{_HEIGHT - 0.5}" y2="{_HEIGHT - 0.5}"/>',
    ]
    for index, one in enumerate(cut):
        base = float(_HEIGHT - 1)
        begins = clock(from_us + (to_us - from_us) * index // BINS)
        for level in SEVERITIES:
            if one[level]:
                tall = max(one[level] / top * (_HEIGHT - 2), 2)
                base -= tall
                parts.append(
                    f'<rect class="{level}" x="{index * _BAR + 0.5}" y="{max(base, 0):.1f}" width="{_BAR - 1}" '
                    f'height="{tall:.1f}"><title>from {begins}: {one[level]} {level}</title></rect>'
                )
    return "".join(parts) + "</svg>"


def _by_release(text: str) -> tuple[bool, list[int]]:
    parts = text.split(" ")[0].split(".")
    known = all(part.isdigit() for part in parts)
    return not known, [int(part) for part in parts] if known else []
