"""What concerns each pod: may I restart it, the dangerous ones first; and how well its agent watched it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from agent.contract.markup import escape
from spark_rollup.fleet.answers import CLEAN_ONLY, DAMAGED, KEEP, SAFE
from spark_rollup.report import restart_answer
from spark_rollup.report.page import text
from spark_rollup.report.page.data import WORDS, Links, PageData, PodKey, Row, TaskKey, counts_as, pod_key
from spark_rollup.report.page.text import anchor, clip, clock, link, marks, name, natural
from spark_rollup.report.restart_answer import ANSWERS, FIRST, HARMLESS, PodAnswer, danger, place
from spark_rollup.report.story import texts

TASKS_OF_ONE, RESTARTS_BYTES = 200, 1_500_000  # tasks of one pod that are listed, and what all pods may take
ROWS, TABLE_BYTES = 50, 1 << 20  # how many lines of a table are shown at once, and what it may take

_BAD = (DAMAGED, KEEP, CLEAN_ONLY)


def restarts(data: PageData, links: Links) -> tuple[str, frozenset[PodKey]]:
    """Render what `safe-to-restart` answers, with what each word means; say which pods are answered for."""
    found = restart_answer.pod_answers(data.restarts, data.known_pods)
    found.sort(key=lambda x: (x.is_gone, -danger(x.worst), natural(pod_key(x.pod))))
    apps = {pod_key(row): texts(row["applications"]) for row in data.pods}
    about = links.about(
        data.urgent(), lambda x: [(x.namespace, x.application_id, task) for task in x.tasks or ("",)]
    )
    lines = text.fitting((_restart(one, data, apps, about) for one in found), RESTARTS_BYTES)
    used = {kind for one in found for kind in one.kinds or (SAFE,)}
    meanings = "".join(
        f"<dt>{_chip(x)}</dt><dd>{escape(ANSWERS[x])}</dd>" for x in reversed(ANSWERS) if x in used
    )
    left = text.rest(
        len(found) - len(lines), "pod", ", none more dangerous; all are in the table <code>restarts</code>."
    )
    body = text.fold("What the words mean", f"<dl>{meanings}</dl>") + text.paged(lines, "pods", 50) + left
    lead = (
        "As of this audit; the pod&#x27;s answer is the worst of its tasks&#x27;. "
        "Ask again right before a restart: <code>statewarden-rollup safe-to-restart --pod POD</code>."
    )
    nobody = '<p class="card calm">No pod has reported.</p>'
    html = text.section("restarts", "May I restart this pod?", lead, body if found else nobody)
    return html, frozenset(pod_key(one.pod) for one in found[: len(lines)])


def _chip(word: str, number: int = 0) -> str:
    tone = "critical" if word in _BAD else "good" if word in HARMLESS else "warning"
    return f'<span class="chip {tone}">{escape(word)}{f" {number}" if number else ""}</span>'


def _restart(
    one: PodAnswer, data: PageData, apps: Mapping[PodKey, list[str]], about: Mapping[TaskKey, Sequence[str]]
) -> str:
    key = pod_key(one.pod)
    chips = " ".join(_chip(kind, len(rows)) for kind, rows in one.kinds.items()) or _chip(SAFE)
    head = (
        f'<span class="where">{data.called(key)}</span> <span class="kinds">{chips}</span> '
        f'<span class="say">{clip(one.words(one.worst), 400)}</span>'
    )
    applications = [*apps.get(key, []), *(str(row["application_id"]) for row in one.rows)]
    attributes = f'id="{anchor("r", key)}"{marks(key[0], applications, [key[1]])}'
    if not one.rows:
        return f'<div class="restart" {attributes}><div class="line">{head}</div></div>'
    ordered = sorted(one.rows, key=lambda row: natural((place(row),)))
    lines = "".join(_task(row, about) for row in ordered[:TASKS_OF_ONE])
    left = len(ordered) - TASKS_OF_ONE
    more = text.meta(f"{left} more in the table <code>restarts</code>" if left > 0 else "")
    return (
        f'<details class="restart{" bad" if one.worst in _BAD else ""}" {attributes}>'
        f'<summary class="line">{head}</summary><ul class="tasks">{lines}</ul>{more}</details>'
    )


def _task(row: Row, about: Mapping[TaskKey, Sequence[str]]) -> str:
    found = about.get((pod_key(row)[0], str(row["application_id"]), str(row["task_id"] or "")), ())
    facts = [("Incident", ", ".join(found[:4]))] if found and str(row["answer"]) in _BAD else []
    facts += [
        (x.capitalize(), escape(said) if x == FIRST else clip(said, 600))
        for x, said in restart_answer.reasons(row)
    ]
    items = "".join(f"<li><b>{label}:</b> {said}</li>" for label, said in facts)
    return f"<li><b>{name(place(row))}</b> {' '.join(map(_chip, texts(row['kinds'])))}<ul>{items}</ul></li>"


_HEADS = ("Pod", "Node", "Agent", "Version", "*Tasks held", "Watched", "*Share", "*Events lost", "Incidents")
"""Names of columns; `*` = numbers, to the right."""

_TABLE = (
    '<div class="scroll" role="region" tabindex="0" aria-label="pods"><table class="stack"><thead><tr>'
    + "".join(f'<th scope="col"{" class=n" * x.startswith("*")}>{x.removeprefix("*")}</th>' for x in _HEADS)
    + "</tr></thead><tbody>{}</tbody></table></div>"
)


def agents(data: PageData, links: Links) -> str:
    """Render one line per pod: its agent, what it holds, how well it was watched, its incidents."""
    watch = {pod_key(row): row for row in data.coverage}
    gaps: dict[PodKey, list[Row]] = defaultdict(list)
    for gap in data.timelines:
        if gap["lane"] == "unknown" and gap["task_id"] is None:
            gaps[pod_key(gap)].append(gap)
    counts: dict[PodKey, Counter[str]] = defaultdict(Counter)
    for incident in data.open_incidents():
        for pod in incident.pods:
            counts[incident.namespace, pod][counts_as(incident)] += 1
    first_us = data.first_seen_us()

    def line(row: Row) -> str:
        key, words = pod_key(row), data.called(pod_key(row))
        linked = link(anchor("r", key), words) if key in links.answered else words
        return _agent(
            row, watch.get(key, {}), _strip(gaps[key], first_us, data.as_of_us), counts[key], linked
        )

    # a stable sort: what needs attention first, each part by name
    rows = sorted(data.pods, key=lambda row: not (counts[pod_key(row)] or gaps[pod_key(row)]))
    rows.sort(key=lambda row: row["agent_state"] != "silent")
    lines = text.fitting(map(line, rows), TABLE_BYTES)
    lead = (
        "Nothing watched the grey stretches: anything may have happened there. Pods that are silent, have an "
        "incident or a gap come first."
    )
    left = text.rest(len(rows) - len(lines), "pod", "; all are in the table <code>pods</code>.")
    return text.section("pods", "Agents", lead, text.paged(lines, "pods", ROWS, _TABLE) + left)


def _agent(row: Row, seen: Row, strip: str, found: Counter[str], linked: str) -> str:
    chips = " ".join(f'<span class="chip {x}">{found[x]} {WORDS[x]}</span>' for x in WORDS if found[x])
    state = str(row["agent_state"])
    tone = "quiet" if state in ("watching", "stopped") else "warning"
    return (
        f'<tr{marks(row["namespace"], texts(row["applications"]), [row["pod"]])}><td class="k">{linked}</td>'
        f'<td class="k">{name(row["node"])}</td><td><span class="chip {tone}">{escape(state)}</span></td>'
        f'<td class="k" data-name="version">{name(row["agent_version"])}</td>'
        f'<td class="n" data-name="tasks held">{row["tasks_held"]}</td><td data-name="watched">{strip}</td>'
        f'<td class="n">{text.percent(seen.get("watched_ratio") or 0.0)}</td>'
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
