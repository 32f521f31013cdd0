"""The agent's own page: one HTML document without scripts, styles or images from elsewhere. Values in, text out.

Names come from a disk and may be hostile: whatever is not ours goes through `escape` or `name`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from string import Template

from agent.contract import codec
from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import EvidenceRole, Incident
from agent.contract.markup import LOOK, coded, escape, number, plural
from agent.contract.runbooks import address_of
from agent.contract.wording import BEYOND_FILES, named
from agent.engine.rows import StoreRow, TaskRow
from agent.inventory.model import BlindInterval
from agent.publish.page_data import ApplicationRow, PageData

EVIDENCE_SHOWN = 12  # findings of one incident, the others are a number
STORES_SHOWN = 24

_HELD = {True: "held", False: "free", None: "not known"}
_DOCUMENT = Template("""\
<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><link rel="icon" href="data:,"><style>$css</style></head><body>
$body</body></html>
""")
_BODY = Template("""\
<a class="skip" href="#main">Skip to the incidents</a><header><p class="brand">statewarden $version</p><h1>$verdict</h1>
<p class="facts">$facts</p><nav aria-label="Sections"><a href="#incidents">Incidents</a><a href="#tasks">Tasks</a>
<a href="#blind">Blind intervals</a><a href="/metrics">Metrics</a><a href="/">Reload</a></nav></header>
<main id="main">$trouble<h2 id="incidents">Incidents</h2>$incidents
<h2 id="tasks">Tasks</h2>$tasks
<h2 id="blind">Blind intervals</h2>$blind</main>
<footer>Read-only: the agent changes nothing below the state directory. $beyond</footer>""")
_INCIDENT = Template("""\
<article class="card $severity" id="$id"><h3><span class="chip $severity">$severity</span>
<span class="chip">$confidence</span> $accepted$detector</h3><p class="where">$place · since $since</p>
<p>$sentence</p>$because$missing<p class="next"><b>Next:</b> $next</p>
<p>$runbook · incident <code>$id</code></p>
<details><summary>Evidence: $count</summary>$evidence</details></article>""")
_NOTHING = """<div class="card warning"><p>No application directory was seen. The most common reason: the application's
<code>state.dir</code> is not on the volume that the agent watches.</p></div>"""
_TASK_HEAD = """<thead><tr><th scope="col">Task, store</th><th scope="col">State</th><th scope="col">Holder</th>
<th scope="col">Checkpoint</th><th scope="col" class="n">Offset</th><th scope="col" class="n">Puts</th>
<th scope="col" class="n">Size</th></tr></thead>"""
_BLIND_HEAD = """<thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col">Cause</th>
<th scope="col">Where</th></tr></thead>"""


def render(data: PageData | None, trouble: str | None = None) -> str:
    """Write the page.

    `data`: what to show; None = the worker has not said anything yet. `trouble`: why what is shown may be old, in
    one line.
    """
    warning = (
        f'<div class="card critical" role="alert"><p><b>{escape(trouble)}.</b> The data below may be old.</p></div>'
        if trouble
        else ""
    )
    if data is None:
        return document("statewarden", f"<h1>Nothing to show yet</h1>{warning}")
    verdict = _verdict(data)
    if data.disabled:
        verdict += f"; {plural(len(data.disabled), 'detector')} disabled"
    body = _BODY.substitute(
        version=escape(data.agent_version), verdict=verdict, facts=_facts(data), trouble=warning,
        incidents=_incidents(data), tasks=_applications(data), blind=_blindness(data),
        beyond=_with_code(BEYOND_FILES),
    )  # fmt: skip
    return _DOCUMENT.substitute(title=f"{verdict} · {escape(data.pod)}", css=_CSS, body=body)


def document(title: str, text: str) -> str:
    """Write a document of text, which is HTML."""
    return _DOCUMENT.substitute(title=escape(title), css=_CSS, body=f'<main class="text">{text}</main>')


def _with_code(text: str, *names: str) -> str:  # none where a name has the mark itself
    return escape(text) if "`" in "".join(names) else coded(text)


def _verdict(data: PageData) -> str:
    """Say in one line how things are; what is not decided is never part of an all-clear."""
    counts = dict(data.counts)
    urgent = [(counts[x], x) for x in (Severity.CRITICAL, Severity.WARNING) if counts.get(x)]
    if urgent:
        words = " and ".join(f"{number(count)} {severity}" for count, severity in urgent)
        return f"{words} incident{'' if urgent[-1][0] == 1 else 's'}"
    if not data.ready:
        return "The first walk is not finished yet"
    if not data.applications:
        return "Nothing to watch: no application directory"
    if not any(row.tasks_total for row in data.applications):
        return "Nothing to watch: no task directory"
    if any(row.ended_us is None for row in data.blind):
        return "Nothing found, but the agent is blind right now"
    if counts.get(Severity.INFO):
        return f"Nothing found but {plural(counts[Severity.INFO], 'remark')}"
    return "Nothing found"


def _facts(data: PageData) -> str:
    """Say what is watched, since when, by whom."""
    tasks = sum(row.tasks_total for row in data.applications)
    volume = f" on a {escape(data.volume)} volume" if data.volume else ""
    return (
        f"Pod <b>{name(data.pod)}</b> · <b>{name(data.state_dir)}</b>{volume}<br>"
        f"{plural(data.applications_total, 'application')}, {plural(tasks, 'task')}, "
        f"{number(data.watches)} kernel watches · "
        f"as of {codec.moment(data.at_us)} · watching since {moment(data.started_us, data.at_us)}"
    )


def _incidents(data: PageData) -> str:
    """Show open incidents, each with its next step and its findings as evidence, after what is not looked for."""
    parts = [_incident(incident, data) for incident in data.incidents]
    if data.disabled:
        rows = "".join(
            f"<li><code>{escape(id_)}</code>: {escape(reason)}</li>" for id_, reason in data.disabled
        )
        some = "" if parts else "No open incident. "
        parts.insert(
            0, f'<div class="card warning"><p>{some}Disabled detectors open none:</p><ul>{rows}</ul></div>'
        )
    left_out = sum(count for _, count in data.counts) - len(data.incidents)
    if data.incidents and left_out > 0:
        more = f"{plural(left_out, 'incident')} more; <code>statewarden scan</code> lists all."
        parts.append(f'<p class="soft">{more}</p>')
    return "".join(parts) or '<div class="card good"><p>No open incident.</p></div>'


def _incident(incident: Incident[Finding], data: PageData) -> str:
    lead, detector = incident.lead, escape(incident.lead.detector)
    place = [name(incident.application_id)] if incident.application_id else ["the agent"]
    if incident.tasks:
        place.append(f"{'task' if len(incident.tasks) == 1 else 'tasks'} {name(named(incident.tasks))}")
    if len(incident.stores) == 1:
        place.append(f"store {name(incident.stores[0])}")
    cause = ": ".join(escape(x) for x in (incident.claim, ", ".join(incident.upstream)) if x)
    wanted = escape(", ".join(lead.missing_facts))
    ordered = sorted(incident.findings, key=lambda row: row[1] is not lead)
    return _INCIDENT.substitute(
        id=escape(incident.id), severity=incident.severity, confidence=incident.confidence,
        accepted='<span class="chip">accepted by configuration</span> ' if incident.is_accepted else "",
        detector=detector, place=" · ".join(place), since=moment(incident.since_us, data.at_us),
        sentence=escape(incident.sentence),
        because=f'<p class="where">{cause}</p>' if cause else "",
        missing=f"<p>For a clearer verdict, give: <code>{wanted}</code></p>" if wanted else "",
        next=_with_code(incident.next_action, incident.application_id, *incident.tasks, *incident.stores),
        runbook=f'Runbook: <a href="{escape(_runbook(data.runbooks, lead.detector))}"><code>statewarden explain'
        f" {detector}</code></a>",
        count=plural(len(ordered), "finding"),
        evidence="".join(_finding(role, finding, data) for role, finding in ordered[:EVIDENCE_SHOWN])
        + _more(len(ordered) - EVIDENCE_SHOWN, "finding"),
    )  # fmt: skip


def _runbook(base: str, detector: str) -> str:
    """Give the address of a runbook: below a base, or the one that the agent serves."""
    return f"{base}/{address_of(detector, '.html')}" if base else f"runbooks/{detector}"


def _finding(role: EvidenceRole, finding: Finding, data: PageData) -> str:
    place = "/".join(x for x in (finding.task_id, finding.store) if x)
    steps = "".join(
        f"<li>{moment(step.at_us, data.at_us)}<br>{escape(step.what)}"
        f"{f' <code>{escape(step.where)}</code>' if step.where else ''}</li>"
        for step in finding.evidence
    )
    chain = f'<ol class="chain">{steps}</ol>' if steps else ""
    ended = "" if finding.status is Status.OPEN else ", resolved"
    return (
        f'<p class="where" id="f-{escape(finding.id)}"><b>{role.value}: {escape(finding.detector)} {name(place)}</b>'
        f" · {finding.severity}, {finding.confidence}{ended} · id <code>{escape(finding.id)}</code></p>{chain}"
    )


def _more(count: int, word: str, rest: str = "") -> str:
    return f'<p class="soft">{plural(count, word)} more{rest}.</p>' if count > 0 else ""


def _applications(data: PageData) -> str:
    cards = "".join(_application(row, data) for row in data.applications)
    return (cards + _more(data.applications_total - len(data.applications), "application")) or _NOTHING


def _application(row: ApplicationRow, data: PageData) -> str:
    seen = [f"Kafka Streams {escape(row.releases)}"]
    if row.process_id:
        seen.append(f"process id <code>{escape(row.process_id)}</code>")
    seen += [escape(process) for process in row.processes]
    tasks = "".join(_task(task, data) for task in row.tasks)
    table = f"<table>{_TASK_HEAD}{tasks}</table>" if tasks else "<p>No task directory.</p>"
    more = _more(row.tasks_total - len(row.tasks), "task", " without a warning or critical finding")
    return (
        f'<section class="card"><h3>{name(row.id)}</h3><p class="where">{" · ".join(seen)}</p>{table}{more}'
        "</section>"
    )


def _task(task: TaskRow, data: PageData) -> str:
    worst = task.worst_severity
    state = (
        f'<span class="chip {worst}">{worst}</span>'
        if worst
        else '<span class="chip warning">undecided</span>'
        if (task.application_id, task.task_id) in data.undecided
        else '<span class="chip good">no finding</span>'
    )
    since = f" since {moment(task.since_us, data.at_us)}" if task.since_us else ""
    written_us = task.checkpoint_written_at_us
    checkpoint = (
        f'<span class="chip warning">{escape(task.checkpoint_problem)}</span>'
        if task.checkpoint_problem
        else moment(written_us, data.at_us)
        if written_us
        else "none"
    )
    life = f" <small>life {task.incarnation}</small>" if (task.incarnation or 0) > 1 else ""
    rows = "".join(map(_store, task.stores[:STORES_SHOWN]))
    if len(task.stores) > STORES_SHOWN:
        left_out = plural(len(task.stores) - STORES_SHOWN, "store")
        rows += f'<tr class="store"><td colspan="7">{left_out} more</td></tr>'
    return (
        f'<tbody><tr class="task"><td><b>{name(task.task_id)}</b>{life}</td><td>{state}</td>'
        f'<td>{_HELD[task.held]}{since}</td><td data-name="checkpoint">{checkpoint}</td><td></td><td></td>'
        f'<td class="n" data-name="size">{size(task.bytes or 0)}</td></tr>{rows}</tbody>'
    )


def _store(store: StoreRow) -> str:
    return (
        f'<tr class="store"><td>{name(store.store)}</td><td></td><td>{_HELD[store.held]}</td><td></td>'
        f'<td class="n" data-name="offset">{number(store.offset)}</td>'
        f'<td class="n" data-name="puts">{number(store.flushed_puts)}</td>'
        f'<td class="n" data-name="size">{size(store.bytes)}, {plural(store.files, "file")}</td></tr>'
    )


def _blindness(data: PageData) -> str:
    """Show when changes could go unseen."""
    if not data.blind:
        return '<div class="card good"><p>The agent has not been blind since it started.</p></div>'
    lasts = '<span class="chip warning">lasts</span>'
    lines = "".join(
        f"<tr><td>{moment(row.started_us, data.at_us)}</td>"
        f"<td>{lasts if row.ended_us is None else moment(row.ended_us, data.at_us)}</td>"
        f"<td>{escape(row.cause)}</td><td>{name(_place(row))}</td></tr>"
        for row in data.blind
    )
    return f'<div class="card"><table>{_BLIND_HEAD}<tbody>{lines}</tbody></table></div>'


def _place(row: BlindInterval) -> str:
    return "/".join(filter(None, (row.application, row.task, row.store))) or "everything"


def name(value: object) -> str:
    """Write a name from disk so that its text direction cannot disturb its surroundings."""
    return f"<bdi>{escape(value)}</bdi>"


def moment(at_us: int, now_us: int) -> str:
    """Write a time with its distance: `14:03:11 (2 min ago)`, with the date where it is another day."""
    at = datetime.fromtimestamp(at_us / 1_000_000, UTC)
    same_day = at.date() == datetime.fromtimestamp(now_us / 1_000_000, UTC).date()
    text = at.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S")
    ago_s = (now_us - at_us) / 1_000_000
    distance = f"{span(ago_s)} ago" if ago_s >= 0 else f"in {span(-ago_s)}"
    return f'<time datetime="{at.strftime("%Y-%m-%dT%H:%M:%SZ")}">{text}</time> <small>{distance}</small>'


def span(seconds: float) -> str:
    """Write a duration in the unit that people would use."""
    for limit_s, size_s, unit in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit_s:
            return f"{seconds / size_s:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


def size(value_bytes: int) -> str:
    """Write a size: `812 B`, `3.4 MiB`."""
    value, units = float(value_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.0f} {units[0]}" if value >= 100 or units[0] == "B" else f"{value:.1f} {units[0]}"


_CSS = (
    LOOK
    + """
html { scroll-padding-top: 12px; -webkit-text-size-adjust: 100%; }
header, main, footer { max-width: 1080px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 28px; }
a:hover { text-decoration-color: currentColor; }
h1 { font-size: 27px; margin: 6px 0 8px; }
h2 { margin: 36px 0 10px; }
h3 { font-size: 16px; margin: 0; overflow-wrap: anywhere; }
small, .soft { color: var(--soft); font-size: 13px; }
.facts, .chip { overflow-wrap: anywhere; } .facts b { color: var(--ink); font-weight: 560; }
nav { margin: 16px 0 0; gap: 6px 18px; } nav a { padding: 4px 0; }
.card { padding: 14px 18px; margin: 0 0 12px; }
.card:is(.critical, .warning, .info, .good) { border-left: 4px solid var(--tone); }
main > .card:first-child { margin-top: 16px; }
.card p { margin: 6px 0 0; max-width: 78ch; overflow-wrap: anywhere; }
.where { color: var(--soft); font-size: 14px; margin: 2px 0 0; overflow-wrap: anywhere; }
.next { border-top: 1px solid var(--line); margin-top: 10px; padding-top: 8px; }
details { margin-top: 8px; } summary { cursor: pointer; padding: 4px 0; font-size: 14px; }
ol.chain { list-style: none; margin: 4px 0 0; padding: 0 0 0 14px; border-left: 2px solid var(--line);
  font-size: 14px; }
ol.chain li { margin: 6px 0; overflow-wrap: anywhere; }
th, td { padding: 7px 16px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th:last-child, td:last-child { padding-right: 0; }
tbody:last-child tr:last-child td { border-bottom: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.store td { border-bottom: 0; padding-top: 2px; padding-bottom: 2px; color: var(--soft); font-size: 13px; }
tr.store td:first-child { padding-left: 14px; }
tr.task td { border-top: 1px solid var(--line); border-bottom: 0; } tbody:first-of-type tr.task td { border-top: 0; }
.text { max-width: 62em; font-size: 16px; padding-top: 12px; padding-bottom: 40px; overflow-wrap: anywhere; }
.text p { max-width: 78ch; } .text span { white-space: nowrap; } .item { padding-left: 1.2em; text-indent: -1.2em; }
.text code, .text table { font-size: 15px; overflow-wrap: break-word; }
pre { background: var(--wash); border-radius: 6px; padding: 10px 14px; white-space: pre-wrap; }
footer { padding-top: 28px; padding-bottom: 40px; }
@media (max-width: 640px) {
  header, main, footer { padding-left: 14px; padding-right: 14px; }
  h1 { font-size: 23px; }
  .card { padding: 12px 14px; }
  thead { position: absolute; left: -9999px; }
  table, tbody { display: block; }
  tr { display: flex; flex-wrap: wrap; gap: 1px 14px; padding: 8px 0; border-bottom: 1px solid var(--line); }
  td { padding: 0; border: 0 !important; }
  .text td:first-child { font-weight: 560; }
  tr.task { border-bottom: 0; padding-bottom: 2px; }
  tr.store { padding: 3px 0 3px 14px; border-bottom: 0; }
  tr.store td:first-child { padding-left: 0; flex-basis: 100%; color: var(--ink); }
  tbody + tbody { border-top: 1px solid var(--line); }
  td[data-name]::before { content: attr(data-name) " "; color: var(--soft); font-size: 13px; }
  .n { text-align: left; }
  td:empty { display: none; }
  summary, nav a { padding: 8px 0; }
}
@media print { nav, .skip { display: none; } .card { break-inside: avoid; } }
"""
)
