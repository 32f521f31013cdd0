"""The table at the end of the page: pods, and how well their agents watched them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from spark_rollup.report.page.address import marks, pod_name, restart_id
from spark_rollup.report.page.data import (
    WORDS,
    Links,
    PageData,
    PodKey,
    Row,
    counts_as,
    pod_key,
)  # fmt: skip
from spark_rollup.report.page.text import (
    clock,
    escape,
    fitting,
    name,
    paged,
    percent,
    rest,
    section,
)  # fmt: skip
from spark_rollup.report.story import texts

ROWS, TABLE_BYTES = 50, 1 << 20
"""How many lines of a table are shown at once, and what it may take."""

_HEADS = (
    "Pod", "Node", "Agent", "Version", "*Tasks held", "Watched", "*Share", "*Events lost", "Incidents",
)  # fmt: skip
"""Names of columns; `*` = numbers, to the right."""

_TABLE = (
    '<div class="scroll" role="region" tabindex="0" aria-label="pods"><table class="stack"><thead><tr>'
    + "".join(f'<th scope="col"{" class=n" * x.startswith("*")}>{x.removeprefix("*")}</th>' for x in _HEADS)
    + "</tr></thead><tbody>{}</tbody></table></div>"
)


def pods(data: PageData, links: Links) -> str:
    """Render one line per pod: its agent, what it holds, how well it was watched, its incidents."""
    watch = {pod_key(row): row for row in data.coverage}
    first, several = data.first_seen_us(), data.several()
    gaps: dict[PodKey, list[Row]] = defaultdict(list)
    for gap in data.timelines:
        if gap["lane"] == "unknown" and gap["task_id"] is None:
            gaps[pod_key(gap)].append(gap)
    counts: dict[PodKey, Counter[str]] = defaultdict(Counter)
    for incident in data.open_incidents():
        for pod in incident.pods:
            counts[incident.namespace, pod][counts_as(incident)] += 1

    def attention(row: Row) -> tuple[bool, bool]:
        key = pod_key(row)
        return row["agent_state"] != "silent", not (counts[key] or gaps[key])

    def line(row: Row) -> str:
        key = pod_key(row)
        words = pod_name(key, several)
        linked = f'<a href="#{restart_id(key)}">{words}</a>' if key in links.answered else words
        return _pod(row, watch.get(key, {}), _strip(gaps[key], first, data.as_of_us), counts[key], linked)

    # a stable sort: what needs attention first, each part by name
    lines = fitting(map(line, sorted(data.pods, key=attention)), TABLE_BYTES)
    lead = (
        "Nothing watched the grey stretches: anything may have happened there. Pods that are silent, have an "
        "incident or a gap come first."
    )
    left = rest(len(data.pods) - len(lines), "pod", "; all are in the table <code>pods</code>.")
    return section("pods", "Agents", lead, paged(lines, "pods", ROWS, _TABLE) + left)


def _pod(row: Row, seen: Row, strip: str, found: Counter[str], linked: str) -> str:
    chips = " ".join(f'<span class="chip {x}">{found[x]} {WORDS[x]}</span>' for x in WORDS if found[x])
    state = str(row["agent_state"])
    tone = "quiet" if state in ("watching", "stopped") else "warning"
    return (
        f'<tr{marks(row["namespace"], texts(row["applications"]), [row["pod"]])}><td class="k">{linked}</td>'
        f'<td class="k">{name(row["node"])}</td><td><span class="chip {tone}">{escape(state)}</span></td>'
        f'<td class="k" data-name="version">{name(row["agent_version"])}</td>'
        f'<td class="n" data-name="tasks held">{row["tasks_held"]}</td>'
        f'<td data-name="watched">{strip}</td>'
        f'<td class="n">{percent(seen.get("watched_ratio") or 0.0)}</td>'
        f'<td class="n" data-name="events lost">{seen.get("lost_events", 0)}</td><td>{chips}</td></tr>'
    )


def _strip(unknown: Sequence[Row], from_us: int, to_us: int) -> str:
    """Draw one pod's time: watched and not."""
    scale = 220 / max(to_us - from_us, 1)
    parts = ['<svg class="strip" viewBox="0 0 220 12" role="img" aria-label="watched time">',
             '<rect class="seen" x="0" y="3" width="220" height="6" rx="3"/>']  # fmt: skip
    for row in unknown:
        begin, end = row["from_us"], row["to_us"]
        left = max(begin - from_us, 0) * scale
        width = max((end - max(begin, from_us)) * scale, 1.5)
        parts.append(
            f'<rect class="unseen" x="{left:.1f}" y="1" width="{min(width, 220 - left):.1f}" height="10">'
            f"<title>{clock(begin)} to {clock(end)}: {escape(row['detail'])}</title></rect>"
        )
    return "".join(parts) + "</svg>"
