"""May I restart this pod? One line per pod, the dangerous ones first, task by task behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_rollup.report.page.address import (
    Cards,
    card_of,
    has_namespaces,
    marks,
    natural,
    pod_key,
    pod_name,
    restart_id,
)
from spark_rollup.report.page.caps import RESTARTS_BYTES, fitting, paged
from spark_rollup.report.page.data import PageData, PodKey, Row, TaskKey
from spark_rollup.report.page.text import clip, count, escape, integer, items_of, name, named, size
from spark_rollup.report.page.unseen import unseen
from spark_rollup.report.page.verdict import urgent

TASKS_OF_ONE = 200
"""Tasks of one pod that are listed."""

_UNKNOWN, _SAFE = "unknown", "safe"
_GOOD = ("safe", "not-running")
_BAD = ("damaged", "keep", "clean-stop-only")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of one pod.

    Args of the dataclass:
        key: The pod.
        rows: Its rows of the table `restarts`.
        kinds: Every answer with the number of its tasks, the worst first.
        doubt: Why the pod as a whole is not known; empty: it is watched.
        gone: Whether its agent has said goodbye, so that nothing is known to run there.
        applications: What its agent watches.
    """

    key: PodKey
    rows: Sequence[Row]
    kinds: Mapping[str, int]
    doubt: str
    gone: bool
    applications: Sequence[str]

    @property
    def worst(self) -> str:
        """The answer for the pod."""
        return next(iter(self.kinds), _SAFE)


def answers(data: PageData) -> list[Answer]:
    """Answer for every pod, the most dangerous first."""
    order = list(data.answers)
    rank = {word: place for place, word in enumerate(order)}
    rows: dict[PodKey, list[Row]] = {}
    for row in data.restarts:
        rows.setdefault(pod_key(row), []).append(row)
    missing = unseen(data)
    ended = {pod_key(row) for row in missing.ended}
    doubts = dict.fromkeys(missing.now(), "not watched now") | dict.fromkeys(ended, "its agent has ended")
    for row in data.known_pods:
        if row["doubt"] is not None:
            doubts[pod_key(row)] = str(row["doubt"])
    applications = {pod_key(row): [str(x) for x in items_of(row["applications"])] for row in data.pods}
    found = []
    for key in dict.fromkeys((*applications, *rows)):
        own, doubt = rows.get(key, []), doubts.get(key, "")
        kinds: dict[str, int] = {_UNKNOWN: 0} if doubt else {}
        for row in own:
            for kind in items_of(row["kinds"]) or [row["answer"]]:
                kinds[str(kind)] = kinds.get(str(kind), 0) + 1
        ordered = dict(sorted(kinds.items(), key=lambda item: -rank.get(item[0], len(order))))
        apps = [*applications.get(key, []), *(str(row["application_id"]) for row in own)]
        found.append(Answer(key, own, ordered, doubt, key in ended, apps))
    return sorted(
        found, key=lambda x: (x.gone and x.worst not in _BAD, -rank.get(x.worst, len(order)), natural(x.key))
    )


def section(data: PageData, cards: Cards) -> tuple[str, frozenset[PodKey]]:
    """Render the answers, and say what each word means.

    Args:
        data: The page's data.
        cards: Incidents that have a card.

    Returns:
        The section, and the pods that it answers for.
    """
    head = (
        '<section aria-labelledby="restarts"><h2 id="restarts">May I restart this pod?</h2>'
        '<p class="lead">As of this audit; the pod&#x27;s answer is the worst of its tasks&#x27;. '
        "Ask again right before a restart: <code>statewarden-rollup safe-to-restart --pod POD</code>.</p>"
    )
    found = answers(data)
    if not found:
        return (
            f'{head}<p class="card calm">No pod has reported, so none can be answered for.</p></section>',
            frozenset(),
        )
    several = has_namespaces(data)
    links = _incidents(data, cards)
    lines = fitting((_pod(one, several, data.answers, links) for one in found), RESTARTS_BYTES)
    left = found[len(lines) :]
    rest = f'<p class="lead rest">{_left(left)}</p>' if left else ""
    used = {kind for one in found for kind in one.kinds}
    meanings = "".join(
        f"<dt>{_chip(kind)}</dt><dd>{escape(meaning)}</dd>"
        for kind, meaning in reversed(list(data.answers.items()))
        if kind in used
    )
    legend = f'<details class="page"><summary>What the words mean</summary><dl>{meanings}</dl></details>'
    html = f"{head}{legend if meanings else ''}{''.join(paged(lines, 'pods', 50))}{rest}</section>"
    return html, frozenset(one.key for one in found[: len(lines)])


def _incidents(data: PageData, cards: Cards) -> Mapping[TaskKey, list[str]]:
    """Link each task, and each application as a whole (an empty task), to what is open about it."""
    found: dict[TaskKey, list[str]] = {}
    for incident in urgent(data):
        address = card_of(incident, cards)
        if address:
            link = f'<a href="#{address}"><code>{clip(incident.id, 80)}</code></a>'
            for task in incident.tasks or ("",):
                found.setdefault((incident.namespace, incident.application_id, task), []).append(link)
    return found


def _left(left: Sequence[Answer]) -> str:
    worst: dict[str, int] = {}
    for one in left:
        worst[one.worst] = worst.get(one.worst, 0) + 1
    words = ", ".join(f"{number} {escape(word)}" for word, number in worst.items())
    return (
        f"Not on this page: {count(len(left), 'pod')} more ({words}), none more dangerous; all are in the table "
        "<code>restarts</code>."
    )


def _chip(word: str, number: int = 0) -> str:
    tone = "critical" if word in _BAD else "good" if word in _GOOD else "warning"
    return f'<span class="chip {tone}">{escape(word)}{f" {number}" if number else ""}</span>'


def _pod(
    one: Answer, several: bool, meanings: Mapping[str, str], links: Mapping[TaskKey, Sequence[str]]
) -> str:
    namespace, pod = one.key
    chips = " ".join(_chip(kind, number) for kind, number in one.kinds.items()) or _chip(_SAFE)
    head = (
        f'<span class="where">{pod_name(one.key, several)}</span> <span class="kinds">{chips}</span> '
        f'<span class="say">{_words(one, meanings)}</span>'
    )
    attributes = f'id="{restart_id(one.key)}"{marks([namespace], one.applications, [pod])}'
    if not one.rows:
        return f'<div class="restart" {attributes}><div class="line">{head}</div></div>'
    ordered = sorted(
        one.rows, key=lambda row: natural((str(row["application_id"]), str(row["task_id"] or "")))
    )
    lines = "".join(_task(row, links) for row in ordered[:TASKS_OF_ONE])
    left = len(ordered) - TASKS_OF_ONE
    more = f'<p class="meta">{left} more in the table <code>restarts</code></p>' if left > 0 else ""
    return (
        f'<details class="restart{" bad" if one.worst in _BAD else ""}" {attributes}>'
        f'<summary class="line">{head}</summary><ul class="tasks">{lines}</ul>{more}</details>'
    )


def _words(one: Answer, meanings: Mapping[str, str]) -> str:
    """Say the worst answer in words, as `safe-to-restart` does."""
    if one.doubt and one.worst == _UNKNOWN:
        return f"{clip(one.doubt, 200)}: what it holds by now is unknown"
    follow = sorted(
        {str(x) for row in one.rows for x in items_of(row["follow"]) if row["answer"] == one.worst}
    )
    if follow:
        return f"do first what {', '.join(f'<code>{escape(x)}</code>' for x in follow)} asks for"
    return escape(meanings.get(one.worst, "")) if one.rows else "it holds no task that can be seen"


def _task(row: Row, links: Mapping[TaskKey, Sequence[str]]) -> str:
    good, bad = items_of(row["healthy_elsewhere"]), items_of(row["ill_elsewhere"])
    task = f"/{name(row['task_id'])}" if row["task_id"] is not None else ""
    chips = " ".join(_chip(str(kind)) for kind in items_of(row["kinds"]) or [row["answer"]])
    facts = []
    about = links.get((*pod_key(row)[:1], str(row["application_id"]), str(row["task_id"] or "")), ())
    if about and str(row["answer"]) in _BAD:
        facts.append(f"<b>Incident:</b> {', '.join(about[:4])}")
    if row["first_action"]:
        facts.append(f"<b>First:</b> {clip(row['first_action'], 600)}")
    if row["task_id"] is not None:
        ill = f"; not healthy: {named(bad, 6)}" if bad else ""
        cost = (
            f"; restoring costs {size(integer(row['restore_bytes']))}"
            if row["restore_bytes"] is not None
            else ""
        )
        facts.append(f"<b>Elsewhere:</b> {named(good, 6) or 'no healthy copy'}{ill}{cost}")
        facts.append(f"<b>If killed:</b> {clip(row['unclean_stop'], 400)}")
    if row["doubt"]:
        facts.append(f"<b>Doubt:</b> {clip(row['doubt'], 200)}")
    items = "".join(f"<li>{fact}</li>" for fact in facts)
    return f"<li><b>{name(row['application_id'])}{task}</b> {chips}<ul>{items}</ul></li>"
