"""May I restart this pod? What `safe-to-restart` answers, the dangerous pods first, task by task behind each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_rollup.fleet.answers import CLEAN_ONLY, DAMAGED, KEEP, SAFE
from spark_rollup.report import restart_answer
from spark_rollup.report.page import text
from spark_rollup.report.page.address import marks, pod_name, restart_id
from spark_rollup.report.page.data import Links, PageData, PodKey, Row, TaskKey, natural, pod_key
from spark_rollup.report.page.text import clip, code, escape, fitting, fold, name, paged, rest
from spark_rollup.report.restart_answer import ANSWERS, FIRST, HARMLESS, PodAnswer, danger
from spark_rollup.report.story import texts

TASKS_OF_ONE, RESTARTS_BYTES = 200, 1_500_000
"""Tasks of one pod that are listed, and what all pods may take."""

_BAD = (DAMAGED, KEEP, CLEAN_ONLY)


def section(data: PageData, links: Links) -> tuple[str, frozenset[PodKey]]:
    """Render the answers, with what each word means; say which pods are answered for."""
    lead = (
        "As of this audit; the pod&#x27;s answer is the worst of its tasks&#x27;. "
        "Ask again right before a restart: <code>statewarden-rollup safe-to-restart --pod POD</code>."
    )
    found = restart_answer.pod_answers(data.restarts, data.known_pods)
    found.sort(key=lambda x: (x.is_gone, -danger(x.worst), natural(pod_key(x.pod))))
    about, apps = _incidents(data, links), {pod_key(row): texts(row["applications"]) for row in data.pods}
    several = data.several()
    lines = fitting((_pod(one, several, apps, about) for one in found), RESTARTS_BYTES)
    used = {kind for one in found for kind in one.kinds or (SAFE,)}
    meanings = "".join(
        f"<dt>{_chip(kind)}</dt><dd>{escape(meaning)}</dd>"
        for kind, meaning in reversed(ANSWERS.items())
        if kind in used
    )
    left = rest(
        len(found) - len(lines), "pod", ", none more dangerous; all are in the table <code>restarts</code>."
    )
    body = fold("What the words mean", f"<dl>{meanings}</dl>") + paged(lines, "pods", 50) + left
    if not found:
        body = '<p class="card calm">No pod has reported.</p>'
    answered = frozenset(pod_key(one.pod) for one in found[: len(lines)])
    return text.section("restarts", "May I restart this pod?", lead, body), answered


def _incidents(data: PageData, links: Links) -> Mapping[TaskKey, list[str]]:
    """Link each task, and each application as a whole (an empty task), to what is open about it."""
    found: dict[TaskKey, list[str]] = {}
    for incident in data.urgent():
        if address := links.card(incident):
            link = f'<a href="#{address}">{code(incident.id)}</a>'
            for task in incident.tasks or ("",):
                found.setdefault((incident.namespace, incident.application_id, task), []).append(link)
    return found


def _chip(word: str, number: int = 0) -> str:
    tone = "critical" if word in _BAD else "good" if word in HARMLESS else "warning"
    return f'<span class="chip {tone}">{escape(word)}{f" {number}" if number else ""}</span>'


def _pod(
    one: PodAnswer, several: bool, apps: Mapping[PodKey, list[str]], about: Mapping[TaskKey, Sequence[str]]
) -> str:
    key = pod_key(one.pod)
    chips = " ".join(_chip(kind, len(rows)) for kind, rows in one.kinds.items()) or _chip(SAFE)
    head = (
        f'<span class="where">{pod_name(key, several)}</span> <span class="kinds">{chips}</span> '
        f'<span class="say">{clip(one.words(one.worst), 400)}</span>'
    )
    applications = [*apps.get(key, []), *(str(row["application_id"]) for row in one.rows)]
    attributes = f'id="{restart_id(key)}"{marks(key[0], applications, [key[1]])}'
    if not one.rows:
        return f'<div class="restart" {attributes}><div class="line">{head}</div></div>'
    ordered = sorted(one.rows, key=lambda row: natural((restart_answer.place(row),)))
    lines = "".join(_task(row, about) for row in ordered[:TASKS_OF_ONE])
    left = len(ordered) - TASKS_OF_ONE
    more = f'<p class="meta">{left} more in the table <code>restarts</code></p>' if left > 0 else ""
    return (
        f'<details class="restart{" bad" if one.worst in _BAD else ""}" {attributes}>'
        f'<summary class="line">{head}</summary><ul class="tasks">{lines}</ul>{more}</details>'
    )


def _task(row: Row, about: Mapping[TaskKey, Sequence[str]]) -> str:
    chips = " ".join(map(_chip, texts(row["kinds"])))
    found = about.get((pod_key(row)[0], str(row["application_id"]), str(row["task_id"] or "")), ())
    facts = [f"<b>Incident:</b> {', '.join(found[:4])}"] if found and str(row["answer"]) in _BAD else []
    facts += [
        f"<b>{label.capitalize()}:</b> {escape(said) if label == FIRST else clip(said, 600)}"
        for label, said in restart_answer.reasons(row)
    ]
    items = "".join(f"<li>{fact}</li>" for fact in facts)
    return f"<li><b>{name(restart_answer.place(row))}</b> {chips}<ul>{items}</ul></li>"
