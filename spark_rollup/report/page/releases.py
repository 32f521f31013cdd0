"""The trend by Streams release: one line per release, and when its incidents began, on one time axis."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.report.page.address import first_seen_us
from spark_rollup.report.page.data import SEVERITIES, WORDS, PageData, level
from spark_rollup.report.page.text import clip, clock, day
from spark_rollup.report.page.verdict import is_open

BINS = 32
"""How many bars the covered time is cut into."""

_BAR, _HEIGHT = 6, 24


def releases(data: PageData) -> str:
    """Render applications, tasks that are hit, open incidents, and when incidents began, by release."""
    if not data.releases:
        return ""
    release = {
        (str(row["namespace"] or ""), str(row["application_id"])): str(row["release"])
        for row in data.releases
    }
    applications = Counter(release.values())
    rows: dict[str, list[FleetIncident]] = defaultdict(list)
    for incident in data.incidents:
        where = release.get((incident.namespace, incident.application_id))
        if where is not None:
            rows[where].append(incident)
    from_us, to_us = first_seen_us(data), data.as_of_us
    bins = {version: _bins(rows[version], from_us, to_us) for version in applications}
    top = max((sum(one.values()) for cut in bins.values() for one in cut), default=0)
    lines = "".join(
        _line(version, applications[version], rows[version], _bars(bins[version], top, from_us, to_us))
        for version in sorted(applications, key=_by_release)
    )
    heads = "".join(f'<th scope="col" class="n">{WORDS[x]}</th>' for x in SEVERITIES)
    until = clock(to_us) if day(to_us) == day(from_us) else f"{day(to_us)} {clock(to_us)}"
    return (
        '<section aria-labelledby="releases"><h2 id="releases">By Kafka Streams release</h2>'
        '<p class="lead">Open incidents, and when those of the covered time began: '
        f"{day(from_us)} {clock(from_us)} to {until}, resolved ones included.</p>"
        '<div class="scroll" role="region" tabindex="0" aria-label="By release"><table class="stack"><thead><tr>'
        '<th scope="col">Release</th>'
        f'<th scope="col" class="n">Applications</th><th scope="col" class="n">Tasks hit</th>{heads}'
        f'<th scope="col">Began</th></tr></thead><tbody>{lines}</tbody></table></div></section>'
    )


def _line(version: str, applications: int, rows: Sequence[FleetIncident], bars: str) -> str:
    alive = [x for x in rows if is_open(x)]
    found = Counter(level(x.severity) for x in alive)
    hit = {
        (x.namespace, x.application_id, task)
        for x in alive
        if level(x.severity) == SEVERITIES[0]
        for task in x.tasks
    }
    counts = "".join(f'<td class="n" data-name="{WORDS[x]}">{found[x] or ""}</td>' for x in SEVERITIES)
    return (
        f'<tr><td class="k">{clip(version, 100)}</td><td class="n" data-name="applications">{applications}</td>'
        f'<td class="n" data-name="tasks hit">{len(hit) or ""}</td>{counts}<td class="k">{bars}</td></tr>'
    )


def _bins(rows: Sequence[FleetIncident], from_us: int, to_us: int) -> list[Counter[str]]:
    """Count incidents by severity and by when they began; what began earlier is in the first bar."""
    cut: list[Counter[str]] = [Counter() for _ in range(BINS)]
    for incident in rows:
        place = (incident.since_us - from_us) * BINS // max(to_us - from_us, 1)
        cut[min(max(place, 0), BINS - 1)][level(incident.severity)] += 1
    return cut


def _bars(cut: Sequence[Counter[str]], top: int, from_us: int, to_us: int) -> str:
    """Draw stacked bars, all releases on one scale; a single one is always visible."""
    total = sum((one for one in cut), Counter[str]())
    words = ", ".join(f"{total[x]} {WORDS[x]}" for x in SEVERITIES if total[x]) or "nothing"
    width = BINS * _BAR
    parts = [
        f'<svg class="bars" viewBox="0 0 {width} {_HEIGHT}" role="img" aria-label="began: {words}">',
        f'<line class="grid" x1="0" x2="{width}" y1="{_HEIGHT - 0.5}" y2="{_HEIGHT - 0.5}"/>',
    ]
    for index, one in enumerate(cut):
        base = float(_HEIGHT - 1)
        begins = clock(from_us + (to_us - from_us) * index // BINS)
        for word in SEVERITIES:
            if one[word]:
                tall = max(one[word] / top * (_HEIGHT - 2), 2)
                base -= tall
                parts.append(
                    f'<rect class="{word}" x="{index * _BAR + 0.5}" y="{max(base, 0):.1f}" width="{_BAR - 1}" '
                    f'height="{tall:.1f}"><title>from {begins}: {one[word]} {WORDS[word]}</title></rect>'
                )
    return "".join(parts) + "</svg>"


def _by_release(text: str) -> tuple[bool, list[int]]:
    parts = text.split(" ")[0].split(".")
    known = all(part.isdigit() for part in parts)
    return not known, [int(part) for part in parts] if known else []
