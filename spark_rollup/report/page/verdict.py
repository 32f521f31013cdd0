"""The first lines: the verdict, how old it is, what was read, and what was not seen: by name, never as an average."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from agent.contract.audited import FleetIncident
from agent.contract.codec import parse_us
from spark_rollup.fleet.restarts import UNDECIDED
from spark_rollup.report.missed import in_words
from spark_rollup.report.page.data import (
    REMARK,
    SEVERITIES,
    WORDS,
    Links,
    PageData,
    PodKey,
    counts_as,
    pod_key,
    short,
)
from spark_rollup.report.page.text import (
    NAMED,
    clip,
    clock,
    code,
    count,
    day,
    escape,
    fold,
    moment,
    name,
    named,
    percent,
)  # fmt: skip
from spark_rollup.report.restart_answer import age as span
from spark_rollup.report.since_last import FILE, Change, in_a_line
from spark_rollup.report.story import some, texts

MOST_PODS = 1000
"""Pods of one kind, or incidents, that are named behind a fold."""

CHANGES = 6
"""So many incidents that are new, or worse, are named in the first lines."""


SILENT, BLIND, GAPS, ENDED = "Silent now", "Blind now", "Not watched for a while", "Agent has ended"

_STATES = {"silent": SILENT, "stopped": ENDED}


def unseen(data: PageData) -> dict[str, dict[PodKey, str]]:
    """Sort the pods that were not seen throughout by what was the matter; each with the reason as HTML."""
    found: dict[str, dict[PodKey, str]] = {head: {} for head in (SILENT, BLIND, GAPS, ENDED)}
    for row in data.pods:
        state = str(row["agent_state"])
        if state in _STATES:
            at_us = parse_us(row["last_seen"])
            heard = f"last heard {moment(at_us)}" if at_us is not None else "never heard"
            found[_STATES[state]][pod_key(row)] = heard
    taken = found[SILENT] | found[ENDED]
    for row in data.timelines:
        of_pod = row["lane"] == "unknown" and row["task_id"] is None and row["application_id"] is None
        lasts = row["to_us"] is None or row["to_us"] >= data.as_of_us
        if of_pod and lasts and pod_key(row) not in taken:
            since = f"since {moment(row['from_us'])}: {escape(row['detail'])}"
            found[BLIND].setdefault(pod_key(row), since)
    taken |= found[BLIND]
    for row in sorted(data.coverage, key=lambda row: -row["unknown_seconds"]):
        missed, of = row["unknown_seconds"], row["span_seconds"]
        if missed > 0 and pod_key(row) not in taken:
            share = percent(1 - missed / of if of else 0.0)
            found[GAPS][pod_key(row)] = f"{span(missed)} of {span(of)} missing, {share} watched"
    return found


def unseen_now(data: PageData) -> list[PodKey]:
    """List the pods of which nothing is known at the audit's time although they may run."""
    found = unseen(data)
    return list(found[SILENT] | found[BLIND])


def headline(data: PageData) -> str:
    """Say in one sentence how things are; what was not seen is never part of an all-clear."""
    found, names = data.urgent(), _unseen_names(data)
    missed = escape("; ".join(filter(None, (in_words(data.coverage), data.lacking()))))
    if not found:
        return f"Unknown: {missed}" if missed else _all_clear(data, names)
    missing = (f"; not seen: {names}" if names else "") + (f"; {missed}" if missed else "")
    if len(found) == 1:
        return f"1 {counts_as(found[0])} incident: {short(found[0])}{missing}"
    counted = Counter(map(counts_as, found))
    counts = [(counted[word], word) for word in (*SEVERITIES[:-1], UNDECIDED)]
    words = " and ".join(f"{number} {word}" for number, word in counts if number)
    return f"{words} incidents in {_where(found)}{missing}"


def _where(found: Sequence[FleetIncident]) -> str:
    several = len({x.namespace for x in found}) > 1
    services = sorted({(x.namespace, x.application_id) for x in found})
    if len(services) > 3:
        return count(len(services), "application")
    return ", ".join(
        name("/".join(part for part in (x if several else x[1:]) if part) or "the fleet") for x in services
    )


def _all_clear(data: PageData, names: str) -> str:
    if not data.pods:
        return "Nothing was read: no pod has reported"
    found = unseen(data)
    gaps, ended = len(found[GAPS]), len(found[ENDED])
    unsure = sum(bool(texts(row.get("not_given"))) for row in data.releases)
    limits = [
        f"not seen: {names}" if names else "",
        f"{count(gaps, 'pod')} with gaps" if gaps else "",
        f"{count(ended, 'pod')} without an agent by now" if ended else "",
        f"{count(sum(data.quarantine.values()), 'line')} or files not used" if data.quarantine else "",
        f"{count(len(data.undetected()), 'detector')} disabled" if data.disabled else "",
        f"settings of {count(unsure, 'application')} not given" if unsure else "",
    ]
    remarks = len(data.open_incidents())
    but = f" but {count(remarks, WORDS[REMARK])}" if remarks else ""
    within = f" ({', '.join(filter(None, limits))})" if any(limits) else ""
    return f"Nothing wrong found in what was watched{but}{within}"


def _unseen_names(data: PageData) -> str:
    pods = unseen_now(data)
    if len(pods) > 3:
        return count(len(pods), "pod")
    return ", ".join(map(data.pod, pods))


def header(data: PageData, links: Links) -> str:
    """Render verdict, what changed, age, and what was read."""
    return (
        f'<p class="brand">statewarden fleet audit</p><h1>{headline(data)}</h1>{_since_last(data, links)}'
        f'<p class="facts">{_age(data)}</p><p class="facts">{read(data)}</p>'
    )


def _since_last(data: PageData, links: Links) -> str:
    """Say what changed since the last audit, with the way to what is new or worse; what is gone is folded."""
    since = data.since_last
    if since is None:
        return ""
    words = escape(since.in_words())
    for change in (Change.NEW, Change.WORSE):
        found = [x for x in data.incidents if since.now.get((x.namespace, x.id)) is change]
        words += f"; {change.value}: {some(list(map(links.to, found)), CHANGES)}" if found else ""
    over = some([clip(in_a_line(row)) for row in since.gone], MOST_PODS)
    gone = fold("What is gone", f'<p class="facts">{over}</p>') if over else ""
    return f'<p class="facts changed">{words[0].upper()}{words[1:]}</p>{gone}'


def _age(data: PageData) -> str:
    """Say how old the verdict is: `as of ..., newest event 2 min old, run took 41 s`."""
    parts = [f"as of {moment(data.as_of_us)}"]
    newest = max((parse_us(row["last_seen"]) or 0 for row in data.pods), default=0)
    if data.written_us and newest:
        old = (data.written_us - newest) / 1e6
        parts.append(
            f"newest event {span(old)} old" if old >= 0 else f"newest event {span(-old)} ahead of this clock"
        )
    if data.took_s is not None:
        parts.append(f"run took {span(data.took_s)}")
    # a page that is left open gets older: a script counts on from here
    at = (
        f' <strong id="age" data-at="{data.written_us // 1000}" role="status"></strong>'
        if data.written_us
        else ""
    )
    return f"{', '.join(parts)}{at}"


def read(data: PageData) -> str:
    """Say what was read."""
    applications = data.applications()
    tasks = sum(row["tasks_held"] for row in data.pods)
    stores = {(row["namespace"], row["application_id"], row["task_id"]) for row in data.restarts}
    seen = f", {count(len(stores), 'task')} known" if len(stores) > tasks else ""
    apps = f": {named(applications, 5)}" if applications else ""
    parts = [
        f"read {count(len(data.pods), 'pod')}",
        f"{count(len(applications), 'application')}{apps}",
        f"{count(tasks, 'task')} held now{seen}",
    ]
    if data.coverage:
        first = data.first_seen_us()
        until = clock(data.as_of_us) if day(first) == day(data.as_of_us) else moment(data.as_of_us)
        parts.append(f"{day(first)} {clock(first)} to {until}")
    return " &middot; ".join(parts)


def tiles(data: PageData) -> str:
    """Render the counts: open incidents by severity, resolved ones, and pods that are seen right now."""
    alive = Counter(map(counts_as, data.open_incidents()))
    cells = [
        (
            word if alive[word] else "none",
            alive[word],
            f"{WORDS[word]}{'s' if word == REMARK else ''}, open",
        )
        for word in (*SEVERITIES, UNDECIDED)
        if word in SEVERITIES or alive[word]
    ]
    resolved = len(data.incidents) - alive.total()
    missing, total = len(unseen_now(data)), len(data.pods)
    seen = total - missing - len(unseen(data)[ENDED])
    kind = "warning" if missing or not total else "good" if seen else "none"
    cells.append(("" if resolved else "none", resolved, "resolved"))
    body = "".join(
        f'<div class="tile {kind}"><b>{value}</b><span>{label}</span></div>'
        for kind, value, label in (*cells, (kind, f"{seen} of {total}", "pods seen now"))
    )
    return f'<div class="tiles">{body}</div>'


def box(data: PageData) -> str:
    """Name what was not seen, and what else is not in the audit; nothing if all was seen."""
    lines = []
    for head, pods in unseen(data).items():
        if pods:
            names = [f"{data.pod(pod)} <small>{why}</small>" for pod, why in pods.items()]
            lines.append(f"<b>{head}:</b> {_folded(names)}")
    if data.expected:
        named_ = data.expected.named()[:MOST_PODS]
        lines += [f"<b>{clip(head[0].upper() + head[1:])}:</b> {clip(text)}" for head, text in named_]
    if data.since_last and data.since_last.not_heard:
        lost = [clip(in_a_line(row)) for row in data.since_last.not_heard]
        lines.append(f"<b>Incidents not heard of any more:</b> {some(lost, NAMED)}; see <code>{FILE}</code>")
    if data.quarantine:
        words = ", ".join(f"{number} {escape(reason)}" for reason, number in sorted(data.quarantine.items()))
        lines.append(f"<b>Not used:</b> {words}; see the table <code>quarantine</code>")
    missed = in_words(data.coverage)
    if missed:
        lines.append(f"<b>Not in the input:</b> {escape(missed)}")
    not_given = [
        f"{name('/'.join(str(part) for part in (row['namespace'], row['application_id']) if part))}"
        f" <small>{escape(', '.join(keys))}</small>"
        for row in data.releases
        if (keys := texts(row.get("not_given")))
    ]
    if not_given:
        lines.append(f"<b>Settings that no agent was given:</b> {some(not_given, NAMED)}")
    if data.disabled:
        lines.append(f"<b>Not searched for, disabled by settings of agents:</b> {_disabled(data)}")
    if not lines:
        return ""
    items = "".join(f"<li>{line}</li>" for line in lines)
    return (
        '<section class="unseen" aria-labelledby="unseen"><h2 id="unseen">Not seen</h2>'
        f'<p class="lead">Anything may have happened there.</p><ul>{items}</ul></section>'
    )


def _disabled(data: PageData) -> str:
    """Name the detectors that agents have disabled, why, and on which pods."""
    places: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for row in data.disabled:
        places[str(row["detector"]), str(row["reason"])][str(row["pod"])] = None
    return "; ".join(
        f"{code(detector)} <small>on {named(pods)}: {clip(reason, 500)}</small>"
        for (detector, reason), pods in sorted(places.items())
    )


def _folded(words: Sequence[str]) -> str:
    more, left = words[NAMED:MOST_PODS], len(words) - MOST_PODS
    if not more:
        return ", ".join(words)
    last = f"; {count(left, 'pod')} more in the table <code>pods</code>" if left > 0 else ""
    hidden = fold(f"and {len(words) - NAMED} more", ", ".join(more) + last)
    return ", ".join(words[:NAMED]) + hidden
