"""The sections of the page, each from the data to HTML."""

from __future__ import annotations

from agent.contract import codec
from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import EvidenceRole, Incident
from agent.contract.wording import named
from agent.engine.rows import StoreRow
from agent.publish.page.data import EVIDENCE_SHOWN, ApplicationRow, BlindRow, PageData, SettingRow, TaskRow
from agent.publish.page.words import escape, moment, name, number, plural, size

_HELD = {True: "held", False: "free", None: "not known"}
_LASTS = '<span class="chip warning">lasts</span>'


def headline(data: PageData) -> str:
    """Say in one line how things are; what is not decided or not searched for is never part of an all-clear."""
    verdict = _verdict(data)
    return f"{verdict}; {plural(len(data.disabled), 'detector')} disabled" if data.disabled else verdict


def _verdict(data: PageData) -> str:
    missing = dict(data.missing_counts)
    counts = {severity: count - missing.get(severity, 0) for severity, count in data.counts}
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
    if data.facts_missing:
        return (
            f"Nothing proved; {plural(data.facts_missing, 'fact')} missing:"
            f" {plural(data.undecided, 'detector')} cannot decide"
        )
    if counts.get(Severity.INFO):
        return f"Nothing found but {plural(counts[Severity.INFO], 'remark')}"
    return "Nothing found"


def facts(data: PageData) -> str:
    """Say what is watched, since when, by whom."""
    tasks = sum(row.tasks_total for row in data.applications)
    volume = f" on a {escape(data.volume)} volume" if data.volume else ""
    return (
        f'<p class="facts">Pod <b>{name(data.pod)}</b> · <b>{name(data.state_dir)}</b>{volume}<br>'
        f"{plural(data.applications_total, 'application')}, {plural(tasks, 'task')}, "
        f"{number(data.watches)} kernel watches · "
        f"as of {codec.moment(data.at_us)} · since {moment(data.started_us, data.at_us)}</p>"
    )


def incidents(data: PageData) -> str:
    """Show open incidents, each with its next step and its findings as evidence."""
    disabled = _disabled(data)
    if not data.incidents:
        return disabled or '<div class="card good"><p>No open incident.</p></div>'
    parts = [disabled, *(_incident(incident, data) for incident in data.incidents)]
    left_out = sum(count for _, count in data.counts) - len(data.incidents)
    if left_out > 0:
        parts.append(
            f'<p class="soft">{plural(left_out, "incident")} more; <code>statewarden scan</code> lists all.</p>'
        )
    return "".join(parts)


def _disabled(data: PageData) -> str:
    """Name what is not looked for, and why."""
    if not data.disabled:
        return ""
    rows = "".join(f"<li><code>{escape(id_)}</code>: {escape(reason)}</li>" for id_, reason in data.disabled)
    some = "" if data.incidents else "No open incident. "
    return f'<div class="card warning"><p>{some}Disabled detectors open none:</p><ul>{rows}</ul></div>'


def _incident(incident: Incident[Finding], data: PageData) -> str:
    lead = incident.lead
    place = [name(incident.application_id)] if incident.application_id else ["the agent"]
    if incident.tasks:
        place.append(f"{'task' if len(incident.tasks) == 1 else 'tasks'} {name(named(incident.tasks))}")
    if len(incident.stores) == 1:
        place.append(f"store {name(incident.stores[0])}")
    cause = [escape(x) for x in (incident.title, ", ".join(incident.upstream)) if x]
    because = f'<p class="where">{": ".join(cause)}</p>' if cause else ""
    missing = (
        f"<p>To know more, give: <code>{escape(', '.join(lead.missing_facts))}</code></p>"
        if lead.missing_facts
        else ""
    )
    return (
        f'<article class="card {incident.severity}" id="{escape(incident.id)}">'
        f'<h3><span class="chip {incident.severity}">{incident.severity}</span> '
        f'<span class="chip">{incident.confidence}</span> {_acknowledged(incident)}{escape(lead.detector)}</h3>'
        f'<p class="where">{" · ".join(place)} · since {moment(incident.since_us, data.at_us)}</p>'
        f"<p>{escape(incident.sentence)}</p>{because}{missing}"
        f'<p class="next"><b>Next:</b> {escape(incident.next_action)}</p>'
        f"<p>{_runbook(lead.detector, data.runbooks)} · incident <code>{escape(incident.id)}</code></p>"
        f"{_evidence(incident, data)}</article>"
    )


def _acknowledged(incident: Incident[Finding]) -> str:
    return '<span class="chip">accepted by configuration</span> ' if incident.is_accepted else ""


def _evidence(incident: Incident[Finding], data: PageData) -> str:
    """List the findings of an incident with what was seen, the lead first."""
    ordered = sorted(incident.findings, key=lambda row: row[1] is not incident.lead)
    listed = "".join(_finding(role, finding, data) for role, finding in ordered[:EVIDENCE_SHOWN])
    left_out = len(ordered) - EVIDENCE_SHOWN
    more = f'<p class="soft">{plural(left_out, "finding")} more.</p>' if left_out > 0 else ""
    return f"<details><summary>Evidence: {plural(len(ordered), 'finding')}</summary>{listed}{more}</details>"


def _finding(role: EvidenceRole, finding: Finding, data: PageData) -> str:
    place = "/".join(x for x in (finding.task_id, finding.store) if x)
    steps = "".join(
        f"<li>{moment(step.at_us, data.at_us)}<br>{escape(step.what)}"
        f"{f' <code>{escape(step.where)}</code>' if step.where else ''}</li>"
        for step in finding.evidence
    )
    chain = f'<ol class="chain">{steps}</ol>' if steps else ""
    said = f"{role.value}: {escape(finding.detector)} {name(place)}"
    ended = "" if finding.status is Status.OPEN else ", resolved"
    return (
        f'<p class="where" id="f-{escape(finding.id)}"><b>{said}</b> · {finding.severity}, {finding.confidence}{ended}'
        f" · id <code>{escape(finding.id)}</code></p>{chain}"
    )


def _runbook(detector: str, base: str) -> str:
    if base:
        return f'<a href="{escape(base)}/detectors/{escape(detector)}.html">Runbook</a>'
    return f"Runbook: <code>statewarden explain {escape(detector)}</code>"


def application(row: ApplicationRow, data: PageData) -> str:
    """Show one application with its tasks and settings."""
    seen = [f"Kafka Streams {escape(row.releases)}"]
    if row.process_id:
        seen.append(f"process id <code>{escape(row.process_id)}</code>")
    seen += [escape(process) for process in row.processes]
    tasks = "".join(_task(task, data) for task in row.tasks)
    left_out = row.tasks_total - len(row.tasks)
    more = (
        f'<p class="soft">{plural(left_out, "task")} more without a warning or critical finding.</p>'
        if left_out > 0
        else ""
    )
    head = "".join(
        f'<th scope="col"{kind}>{word}</th>'
        for word, kind in (
            ("Task, store", ""), ("State", ""), ("Holder", ""), ("Checkpoint", ""), ("Offset", ' class="n"'),
            ("Puts", ' class="n"'), ("Size", ' class="n"'),
        )
    )  # fmt: skip
    table = f"<table><thead><tr>{head}</tr></thead>{tasks}</table>" if tasks else "<p>No task directory.</p>"
    return (
        f'<section class="card"><h3>{name(row.id)}</h3><p class="where">{" · ".join(seen)}</p>'
        f"{table}{more}<details><summary>Settings of this application</summary>{settings(row.settings)}</details>"
        "</section>"
    )


def _task(task: TaskRow, data: PageData) -> str:
    state = (
        f'<span class="chip {task.worst}">{task.worst}</span>'
        if task.worst
        else f'<span class="chip{"" if data.facts_missing else " good"}">no finding</span>'
    )
    since_us = task.held_since_us if task.held else task.released_us
    holder = _HELD[task.held] + (
        f" since {moment(since_us, data.at_us)}" if since_us and task.held is not None else ""
    )
    if task.checkpoint_problem:
        checkpoint = f'<span class="chip warning">{escape(task.checkpoint_problem)}</span>'
    else:
        checkpoint = moment(task.checkpoint_us, data.at_us) if task.checkpoint_us else "none"
    life = f" <small>life {task.incarnation}</small>" if task.incarnation > 1 else ""
    total = sum(store.bytes for store in task.stores)
    rows = "".join(_store(store) for store in task.stores)
    if task.stores_left_out:
        rows += f'<tr class="store"><td colspan="7">{plural(task.stores_left_out, "store")} more</td></tr>'
    return (
        f'<tbody><tr class="task"><td><b>{name(task.id)}</b>{life}</td><td>{state}</td><td>{holder}</td>'
        f'<td data-name="checkpoint">{checkpoint}</td><td></td><td></td>'
        f'<td class="n" data-name="size">{size(total)}</td></tr>{rows}</tbody>'
    )


def _store(store: StoreRow) -> str:
    return (
        f'<tr class="store"><td>{name(store.store)}</td><td></td><td>{_HELD[store.held]}</td><td></td>'
        f'<td class="n" data-name="offset">{number(store.offset)}</td>'
        f'<td class="n" data-name="puts">{number(store.flushed_puts)}</td>'
        f'<td class="n" data-name="size">{size(store.bytes)}, {plural(store.files, "file")}</td></tr>'
    )


def blindness(rows: tuple[BlindRow, ...], at_us: int) -> str:
    """Show when changes could go unseen."""
    if not rows:
        return '<div class="card good"><p>The agent was never blind since it started.</p></div>'
    lines = "".join(
        f"<tr><td>{moment(row.started_us, at_us)}</td>"
        f"<td>{_LASTS if row.ended_us is None else moment(row.ended_us, at_us)}</td>"
        f"<td>{escape(row.cause)}</td><td>{name(row.where)}</td></tr>"
        for row in rows
    )
    head = "".join(f'<th scope="col">{word}</th>' for word in ("From", "To", "Cause", "Where"))
    return f'<div class="card"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def settings(rows: tuple[SettingRow, ...]) -> str:
    """Show settings, each with where it comes from."""
    lines = "".join(
        f"<tr><td><code>{escape(row.name)}</code>{_small(row.meaning)}</td><td>{_value(row.value)}</td>"
        f"<td>{escape(row.origin)}</td></tr>"
        for row in rows
    )
    head = "".join(f'<th scope="col">{word}</th>' for word in ("Setting", "Value", "Origin"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _small(text: str) -> str:
    return f"<br><small>{escape(text)}</small>" if text else ""


def _value(value: str | None) -> str:
    if value is None:
        return '<span class="soft">not given</span>'
    return f"<code>{escape(value)}</code>" if value else '<span class="soft">empty</span>'
