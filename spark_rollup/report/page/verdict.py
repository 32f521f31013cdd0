"""The first lines: the verdict, how old it is, what was read, and what was not seen: by name, never as an average."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from agent.contract.audited import FleetIncident
from agent.contract.codec import parse_us
from agent.contract.markup import escape, plural
from spark_rollup.fleet.restarts import UNDECIDED
from spark_rollup.report.missed import in_words
from spark_rollup.report.page import text
from spark_rollup.report.page.data import (
    SEVERITIES,
    WORDS,
    Links,
    PageData,
    PodKey,
    counts_as,
    pod_key,
    short,
)
from spark_rollup.report.page.text import NAMED, clip, clock, code, day, moment, name, named
from spark_rollup.report.restart_answer import age as span
from spark_rollup.report.restart_answer import how_old
from spark_rollup.report.since_last import FILE, Change, in_a_line
from spark_rollup.report.story import some, texts

MOST_PODS = 1000  # pods of one kind, or incidents, that are named behind a fold
CHANGES = 6  # incidents that are new, or worse, that the first lines name

SILENT, BLIND, GAPS, ENDED = "Silent now", "Blind now", "Not watched for a while", "Agent has ended"

_STATES = {"silent": SILENT, "stopped": ENDED}


def unseen(data: PageData) -> dict[str, dict[PodKey, str]]:
    """Sort the pods that were not seen throughout by what was the matter; each with the reason as HTML."""
    found: dict[str, dict[PodKey, str]] = {head: {} for head in (SILENT, BLIND, GAPS, ENDED)}
    for row in data.pods:
        if head := _STATES.get(str(row["agent_state"])):
            at_us = parse_us(row["last_seen"])
            found[head][pod_key(row)] = f"last heard {moment(at_us)}" if at_us is not None else "never heard"
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
            share = text.percent(1 - missed / of if of else 0.0)
            found[GAPS][pod_key(row)] = f"{span(missed)} of {span(of)} missing, {share} watched"
    return found


def unseen_now(data: PageData) -> list[PodKey]:
    """List the pods of which nothing is known at the audit's time although they may run."""
    found = unseen(data)
    return list(found[SILENT] | found[BLIND])


def headline(data: PageData) -> str:
    """Say in one sentence how things are; what was not seen is never part of an all-clear."""
    found, pods = data.urgent(), unseen_now(data)
    names = plural(len(pods), "pod") if len(pods) > 3 else ", ".join(map(data.called, pods))
    missed = escape("; ".join(filter(None, (in_words(data.coverage), data.lacking()))))
    if not found:
        return f"Unknown: {missed}" if missed else _all_clear(data, names)
    missing = (f"; not seen: {names}" if names else "") + (f"; {missed}" if missed else "")
    if len(found) == 1:
        return f"1 {counts_as(found[0])} incident: {short(found[0])}{missing}"
    counted = Counter(map(counts_as, found))
    words = " and ".join(f"{counted[x]} {x}" for x in (*SEVERITIES[:-1], UNDECIDED) if counted[x])
    return f"{words} incidents in {_where(found)}{missing}"


def _where(found: Sequence[FleetIncident]) -> str:
    services = sorted({(x.namespace, x.application_id) for x in found})
    if len(services) > 3:
        return plural(len(services), "application")
    several = len({space for space, _ in services}) > 1
    return ", ".join(_path(x if several else x[1:]) for x in services)


def _path(parts: Sequence[object]) -> str:
    return name("/".join(str(part) for part in parts if part) or "the fleet")


def _all_clear(data: PageData, names: str) -> str:
    if not data.pods:
        return "Nothing was read: no pod has reported"
    found = unseen(data)
    remarks, unsure = len(data.open_incidents()), sum(bool(texts(x.get("not_given"))) for x in data.releases)
    limits = (
        (len(found[GAPS]), "pod", "{} with gaps"),
        (len(found[ENDED]), "pod", "{} without an agent by now"),
        (sum(data.quarantine.values()), "line", "{} or files not used"),
        (len(data.undetected()), "detector", "{} disabled"),
        (unsure, "application", "settings of {} not given"),
    )
    said = [f"not seen: {names}"] if names else []
    said += [words.format(plural(number, noun)) for number, noun, words in limits if number]
    but = f" but {plural(remarks, 'remark')}" if remarks else ""
    within = f" ({', '.join(said)})" if said else ""
    return f"Nothing wrong found in what was watched{but}{within}"


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
        found = [links.to(x) for x in data.incidents if since.now.get((x.namespace, x.id)) is change]
        words += f"; {change.value}: {some(found, CHANGES)}" if found else ""
    over = some([clip(in_a_line(row)) for row in since.gone], MOST_PODS)
    gone = text.fold("What is gone", f'<p class="facts">{over}</p>') if over else ""
    return f'<p class="facts changed">{words[0].upper()}{words[1:]}</p>{gone}'


def _age(data: PageData) -> str:
    """Say how old the verdict is: `as of ..., newest event 2 min old, run took 41 s`."""
    parts, written_us = [f"as of {moment(data.as_of_us)}"], data.written_us
    newest = max((parse_us(row["last_seen"]) or 0 for row in data.pods), default=0)
    if written_us and newest:
        parts.append(f"newest event {how_old((written_us - newest) / 1e6)}")
    if data.took_s is not None:
        parts.append(f"run took {span(data.took_s)}")
    # a page that is left open gets older: a script counts on from here
    at = f' <strong id="age" data-at="{written_us // 1000}" role="status"></strong>' if written_us else ""
    return ", ".join(parts) + at


def read(data: PageData) -> str:
    """Say what was read."""
    applications, tasks = data.applications(), sum(row["tasks_held"] for row in data.pods)
    stores = {(row["namespace"], row["application_id"], row["task_id"]) for row in data.restarts}
    seen = f", {plural(len(stores), 'task')} known" if len(stores) > tasks else ""
    apps = f": {named(applications, 5)}" if applications else ""
    covered = ""
    if data.coverage:
        first, last = data.first_seen_us(), data.as_of_us
        until = clock(last) if day(first) == day(last) else moment(last)
        covered = f"{day(first)} {clock(first)} to {until}"
    apps = f"{plural(len(applications), 'application')}{apps}"
    return text.dotted(
        f"read {plural(len(data.pods), 'pod')}", apps, f"{plural(tasks, 'task')} held now{seen}", covered
    )


def tiles(data: PageData) -> str:
    """Render the counts: open incidents by severity, resolved ones, and pods that are seen right now."""
    alive = Counter(map(counts_as, data.open_incidents()))
    cells: list[tuple[str, object, str]] = [
        (x if alive[x] else "none", alive[x], f"{WORDS[x]}{'s' if x == 'info' else ''}, open")
        for x in (*SEVERITIES, UNDECIDED)
        if x in SEVERITIES or alive[x]
    ]
    resolved = len(data.incidents) - alive.total()
    cells.append(("" if resolved else "none", resolved, "resolved"))
    missing, total = len(unseen_now(data)), len(data.pods)
    seen = total - missing - len(unseen(data)[ENDED])
    kind = "warning" if missing or not total else "good" if seen else "none"
    cells.append((kind, f"{seen} of {total}", "pods seen now"))
    body = "".join(
        f'<div class="tile {kind}"><b>{x}</b><span>{label}</span></div>' for kind, x, label in cells
    )
    return f'<div class="tiles">{body}</div>'


def box(data: PageData) -> str:
    """Name what was not seen, and what else is not in the audit; nothing if all was seen."""
    lines = "".join(f"<li><b>{head}:</b> {words}</li>" for head, words in _not_seen(data).items() if words)
    return lines and (
        '<section class="unseen" aria-labelledby="unseen"><h2 id="unseen">Not seen</h2>'
        f'<p class="lead">Anything may have happened there.</p><ul>{lines}</ul></section>'
    )


def _not_seen(data: PageData) -> Mapping[str, str]:
    """Put what is not in the audit into words, by heads; empty: it is."""
    found = {
        head: _folded([f"{data.called(pod)} <small>{why}</small>" for pod, why in pods.items()])
        for head, pods in unseen(data).items()
    }
    for head, words in data.expected.named()[:MOST_PODS] if data.expected else ():
        found[clip(head[0].upper() + head[1:])] = clip(words)
    lost = [clip(in_a_line(row)) for row in data.since_last.not_heard] if data.since_last else []
    unused = ", ".join(f"{number} {escape(reason)}" for reason, number in sorted(data.quarantine.items()))
    not_given = [
        f"{_path((row['namespace'], row['application_id']))} <small>{escape(', '.join(keys))}</small>"
        for row in data.releases
        if (keys := texts(row.get("not_given")))
    ]
    return found | {
        "Incidents not heard of any more": f"{some(lost, NAMED)}; see <code>{FILE}</code>" if lost else "",
        "Not used": unused and f"{unused}; see the table <code>quarantine</code>",
        "Not in the input": escape(in_words(data.coverage)),
        "Settings that no agent was given": some(not_given, NAMED),
        "Not searched for, disabled by settings of agents": _disabled(data),
    }


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
    last = f"; {plural(left, 'pod')} more in the table <code>pods</code>" if left > 0 else ""
    hidden = text.fold(f"and {len(words) - NAMED} more", ", ".join(more) + last)
    return ", ".join(words[:NAMED]) + hidden
