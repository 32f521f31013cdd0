"""What went wrong: the one list of what to do, and one card per incident, the worst first, with its evidence folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agent.contract.audited import AGENT, FleetIncident
from agent.contract.codec import parse_us
from agent.contract.events import Severity, Status
from agent.contract.markup import coded, escape, plural
from agent.contract.wording import of_release
from spark_rollup.report.page import text
from spark_rollup.report.page.data import WORDS, Links, PageData, Row, counts_as, tasks_of, whole
from spark_rollup.report.page.text import NAMED, NAMES_OF_ONE, clip, clock, code, day, link, moment, named
from spark_rollup.report.page.verdict import read, unseen_now
from spark_rollup.report.restart_answer import age as span
from spark_rollup.report.story import some, texts

INCIDENTS = 1000  # with a card, the worst first
EVIDENCE_BYTES, EVIDENCE_OF_ONE_BYTES = 4 << 20, 128 << 10  # inside all cards, and inside one
FINDINGS_OF_ONE, STEPS_OF_ONE = 20, 40  # steps of one finding: the last ones decided
INSTRUCTIONS, LINKS = 12, 6  # of the list of what to do, and of a line; more is no list of first things

_FINDINGS = "<code>findings.jsonl</code>"


def in_order(data: PageData) -> list[FleetIncident]:
    """Put what is open first, then by severity, state before agents; among equals the order of the audit stays."""
    return sorted(
        data.incidents, key=lambda x: (x.status is Status.RESOLVED, -x.severity.rank, not x.about_state)
    )


def todo(data: PageData, links: Links) -> str:
    """Render what open incidents ask for, the worst first; equal instructions about one application are one step."""
    urgent = sorted(data.urgent(), key=lambda x: -x.severity.rank)
    if len(urgent) < 2:  # the card of a single one is right below
        return ""
    groups: dict[tuple[str, str, str], list[FleetIncident]] = {}
    for one in urgent:
        groups.setdefault((one.namespace, one.application_id, one.next_action), []).append(one)
    steps = list(groups.values())
    items = "".join(f"<li>{_instruction(group, links)}</li>" for group in steps[:INSTRUCTIONS])
    left = [counts_as(incident) for group in steps[INSTRUCTIONS:] for incident in group]
    more = f'<p class="who">and what {by_severity(left)} incidents below ask for</p>' if left else ""
    return (
        '<section class="todo" aria-labelledby="todo"><h2 id="todo">Do this, in this order</h2>'
        f"<ol>{items}</ol>{more}</section>"
    )


def _instruction(group: Sequence[FleetIncident], links: Links) -> str:
    first, word, severity = group[0], counts_as(group[0]), group[0].severity.value
    where = "; ".join(map(links.to, group[:LINKS]))
    more = f" and {len(group) - LINKS} more" if len(group) > LINKS else ""
    return (
        f'<span class="chip {severity}">{word}</span> <span class="who">{where}{more}:</span> '
        f"{escape(first.next_action)}"
    )


def by_severity(severities: Iterable[object]) -> str:
    """Count by severity: `3 critical, 12 warning, 1 remark`."""
    found = Counter(map(str, severities))
    words = {x: plural(found[x], "remark") if x == "info" else f"{found[x]} {x}" for x in WORDS}
    return ", ".join(words[x] for x in words if found[x])


def section(data: PageData, links: Links) -> str:
    """Render open incidents, remarks and what is resolved."""
    groups: dict[str, list[str]] = {"": [], "Remarks": [], "Resolved": []}
    ordered = in_order(data)
    cards = ordered[:INCIDENTS]
    left_bytes, taken = EVIDENCE_BYTES, set(links.cards.values())
    for incident in cards:
        folded = _evidence(incident, left_bytes)
        left_bytes -= len(folded.encode())
        kind = "Remarks" if incident.severity is Severity.INFO else ""
        kind = "Resolved" if incident.status is Status.RESOLVED else kind
        groups[kind].append(_card(incident, data, links, taken, folded))
    parts = [text.paged(groups[""], "incidents") if groups[""] else _nothing(data)]
    for title, noun in (("Remarks", "remarks"), ("Resolved", "resolved incidents")):
        if found := groups[title]:
            parts.append(text.fold(f"{title} &middot; {len(found)}", text.paged(found, noun), "page group"))
    left = ordered[INCIDENTS:]
    resolved = sum(x.status is Status.RESOLVED for x in left)
    over = f"; {resolved} of them resolved" if resolved else ""
    counts = by_severity(map(counts_as, left)) + over
    where = (
        f" ({counts}), none worse. All are in <code>incidents.jsonl</code>, their findings in {_FINDINGS}."
    )
    parts.append(text.rest(len(left), "incident", where))
    return text.section("incidents", "Incidents", "", "".join(parts))


def _nothing(data: PageData) -> str:
    calm = "calm" if data.pods and not unseen_now(data) else "doubt"
    return (
        f'<p class="card {calm}"><b>No open incident</b> in what was read: {read(data)}. No finding does not mean no '
        "damage: unwatched times are listed above, and anything before the first event is unknown.</p>"
    )


def _card(incident: FleetIncident, data: PageData, links: Links, taken: set[str], folded: str) -> str:
    """Render one incident; the addresses of those that it absorbed are added to `taken`."""
    here, severity = links.card(incident), incident.severity.value
    also = [
        address for one in incident.absorbed[:NAMES_OF_ONE] if (address := text.local_id(one)) not in taken
    ]
    taken.update(also)
    asked = _asked(incident.lead.row)
    ask = text.meta(asked and f"S{asked[1:]}.")
    issues = f"{clip(', '.join(incident.upstream), 200)}: " if incident.upstream else ""
    done, asks = ("", "Next") if incident.status is Status.OPEN else (" done", "What was to be done")
    return (
        f'<article class="card incident {severity}{done}" id="{here}" tabindex="-1"'
        f"{text.marks(incident.namespace, [incident.application_id], incident.pods, severity)}>"
        + "".join(f'<span class="also" id="{address}"></span>' for address in dict.fromkeys(also))
        + f'<h3><span class="chip {severity}">{WORDS[counts_as(incident)]}</span> '
        f"{issues}{clip(incident.claim or incident.lead.detector, 200)} "
        f'<a class="id" href="#{here}">{code(incident.id)}</a></h3>'
        f'<p class="where">{whole(incident)}</p><p class="when">{_when(incident, data, links)}</p>'
        f'<p class="say">{clip(incident.sentence)}</p>'
        f'<p class="action"><b>{asks}</b> {coded(incident.next_action)}</p>'
        f"{ask}{folded}{_everyone(incident)}{_more(incident)}</article>"
    )


def _when(incident: FleetIncident, data: PageData, links: Links) -> str:
    ago = (data.as_of_us - incident.since_us) / 1e6
    before = f" ({span(ago)} before this audit)" if ago > 0 else ""
    ways = [link(text.anchor("t", key), escape(key[2])) for key in tasks_of(incident) if key in links.drawn]
    return text.dotted(
        f"since {moment(incident.since_us)}{before}",
        f"ended {moment(incident.ended_us)}" if incident.ended_us is not None else "",
        f'<span class="sure">{escape(incident.confidence)}</span>',
        "" if incident.status is Status.OPEN else escape(incident.status),
        of_release(incident.upstream, incident.affected) if incident.upstream else "",
        f"timeline of {some(ways, LINKS)}" if ways else "",
    )


def _everyone(incident: FleetIncident) -> str:
    """Name all tasks and pods, where the address of the incident names only the first."""
    parts = []
    for noun, values in (("Tasks", incident.tasks), ("Pods", incident.pods)):
        if len(values) > NAMED:
            more = ", in <code>incidents.jsonl</code>" if len(values) > NAMES_OF_ONE else ""
            parts.append(text.meta(f"{noun}: {named(values, NAMES_OF_ONE)}{more}"))
    return text.fold("All tasks and pods", "".join(parts), "evidence") if parts else ""


def _more(incident: FleetIncident) -> str:
    """Name the runbook, and the incidents of agents that are part of this one."""
    others = [code(one) for one in incident.absorbed if one != incident.id]
    also = f"agents&#x27; {plural(len(others), 'incident')} in it: {some(others, NAMED)}" if others else ""
    runbook = f"runbook: <code>statewarden explain {clip(incident.lead.runbook, 100)}</code>"
    return text.meta(text.dotted(runbook, also))


def _evidence(incident: FleetIncident, left_bytes: int) -> str:
    """Render the findings of an incident behind one line, the one that names it first; what does not fit is counted."""
    ordered = sorted(incident.findings, key=lambda item: item[1] is not incident.lead)
    blocks = text.fitting(
        (_finding(str(role), one.row, incident) for role, one in ordered[:FINDINGS_OF_ONE]),
        min(left_bytes, EVIDENCE_OF_ONE_BYTES),
    )
    left = by_severity(one.severity for _, one in ordered[len(blocks) :])
    head = (
        f"{'Further findings, not' if blocks else 'Not'} on this page: {left}; all in {_FINDINGS}, by their"
    )
    more = text.meta(left and f"{head} <code>incident_id</code>.")
    roles = Counter(str(role) for role, _ in ordered)
    words = ", ".join(f"{number} {escape(role)}{'s' if number > 1 else ''}" for role, number in roles.items())
    head = f"Evidence: {plural(len(ordered), 'finding')} <small>{words}</small>"
    return text.fold(head, "".join(blocks) + more, "evidence")


def _finding(role: str, row: Row, incident: FleetIncident) -> str:
    state = "" if row["status"] == "open" else ", resolved"
    said = "" if row["summary"] == incident.sentence else f"<p>{clip(row['summary'])}</p>"
    return (
        f'<details class="finding"{" open" if row is incident.lead.row else ""}><summary>'
        f'<span class="role">{escape(role)}</span> {code(row["detector"])} {text.place(row)} '
        f'<small><span class="word {row["severity"]}">{escape(row["severity"])}</span>, '
        f"{escape(row['confidence'])}{state}</small></summary>"
        f"{said}{_chain(row['evidence'])}{text.meta(_facts(row))}</details>"
    )


def _asked(row: Row) -> str:
    keys = ", ".join(map(code, texts(row.get("missing_facts"))))
    return keys and f"settings that would decide more: {keys} (<code>--set KEY=VALUE</code>)"


def _facts(row: Row) -> str:
    others = ((word, len(texts(row[word]))) for word in ("confirms", "refutes", "explains"))
    return text.dotted(
        "reported by the pod&#x27;s agent only" if row["reported_by"] == AGENT else "",
        f"opened {clip(str(row['opened_at'])[:19].replace('T', ' '), 40)} UTC",
        *(f"{word} {plural(number, 'finding')} of agents" for word, number in others if number),
        _asked(row),
        f"finding {code(row['id'])}",
    )


def _chain(evidence: object) -> str:
    """List what was seen, in time order; of very many steps the last."""
    steps = [step for step in evidence if isinstance(step, Mapping)] if isinstance(evidence, list) else []
    times = [at_us for step in steps if (at_us := parse_us(step["at"])) is not None]
    items, today = [], ""
    for step in steps[-STEPS_OF_ONE:]:
        at_us, shown, exact = parse_us(step["at"]), clip(step["at"], 40), ""
        title = shown
        if at_us is not None:
            title += f" +{span((at_us - min(times)) / 1e6)}" if at_us > min(times) else ""
            date, exact = day(at_us), f' datetime="{escape(step["at"])}"'
            shown = f"{f'<small>{date}</small> ' if date != today else ''}{clock(at_us, millis=True)}"
            today = date
        where = f"<small>{clip(step['where'], 500)}</small>" if step["where"] else ""
        items.append(
            f'<li><time{exact} title="{title}">{shown}</time><div>{clip(step["what"])}{where}</div></li>'
        )
    left = len(steps) - STEPS_OF_ONE
    more = text.meta(f"{plural(left, 'earlier step')} in {_FINDINGS}." if left > 0 else "")
    return f'{more}<ol class="chain">{"".join(items)}</ol>' if items else ""
