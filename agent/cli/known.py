"""Incidents that are known: from what agents recorded, or from a reading of a state directory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from agent.cli.offline import read_once
from agent.cli.streams import complain
from agent.config import Config
from agent.contract.codec import ContractError, LaterVersionError, decode, printable, rfc3339
from agent.contract.events import Severity, Status
from agent.contract.finding import Evidence, Finding, read_back
from agent.contract.grouping import Link, incident_of
from agent.contract.incidents import Incident, gather
from agent.contract.units import Remedy
from agent.errors import UnreadError, UsageError

Told = dict[str, object]


class Story:
    """What one source tells: the last state of each finding, and the incidents of which they are evidence."""

    def __init__(self, source: str, config: Config) -> None:
        """Read all of it. Raises `UsageError`: there is no such source. Raises `UnreadError`: it does not answer."""
        from agent.cli.recorded import Recorded  # it loads what reads from a network

        recorded = Recorded(source, config)
        self._source = source
        self._lines = list(recorded.lines())
        self._unread, self._segments = recorded.unread, recorded.segments
        self._is_spool = recorded.is_spool
        self._later: dict[str, None] = {}  # why a line of a later version is not read

    def incident(self, asked: str) -> Incident[Finding] | None:
        """Give the incident of this id, or of a finding of this id; None = there is none.

        Beside all others of its application: whose step comes first is seen only so.
        """
        digits = asked.removeprefix("i-")  # of an agent that names no incident they are its finding's
        found = self._last([digits], lambda x: asked in (x["finding_id"], _incident_of(x)))
        names = {str(x["application_id"]) for x in found if x.get("application_id")}
        beside = self._last(names, lambda x: x.get("application_id") in names) if names else []
        ids = {str(x["finding_id"]) for x in found}
        gathered = incidents({str(x["finding_id"]): x for x in (*beside, *found)}.values())
        return next((x for x in gathered if any(y.id in ids for y in x.members)), None)

    def about(self, address: str) -> list[Incident[Finding]]:
        """Give all incidents about an application, or about a task (`APPLICATION/TASK`), the worst first."""
        application = address.partition("/")[0]
        found = self._last([application], lambda x: x.get("application_id") == application)
        concerned = {
            _incident_of(x) for x in found if address in (application, f"{application}/{x.get('task_id')}")
        }
        return incidents(x for x in found if _incident_of(x) in concerned)

    def place_of(self, incident: Incident[Finding]) -> tuple[str, str, int]:
        """Say where an incident is, and when its pod said the last of it: namespace, pod, microseconds."""
        ids = {x.id for _, x in incident.findings}
        found = self._last(ids, lambda x: x["finding_id"] in ids)
        lead = next(x for x in found if x["finding_id"] == incident.lead.id)
        newest_us = max(int(str(x["observed_at_us"])) for x in found if x["pod"] == lead["pod"])
        return str(lead.get("namespace") or ""), str(lead["pod"]), newest_us

    def complain_of_unread(self, asked: str, *, nothing: bool) -> None:
        """Say what could not be read. Raises `UsageError`, or `UnreadError` where some was not: there is `nothing`."""
        unread = []
        if self._later:
            count, first = len(self._later), next(iter(self._later))
            unread.append(f"{count} events about it were not read, the first: {first}")
        if self._unread:
            path, why = next(iter(self._unread.items()))
            count_of = f"{len(self._unread)} of {self._segments} segments"
            unread.append(f"{count_of} can't be read and were passed over, the first: {path}: {why}")
        if nothing:
            missing = (
                f"{asked}: no such finding, incident, application or task in the events of {self._source}"
            )
            if Path(self._source, "incidents.jsonl").is_file():
                missing += (
                    "; it is the output of an audit, which holds no events: give what the audit read, or ask the"
                    " pod's running agent, http://HOST:9464"
                )
            elif self._is_spool:
                missing += (
                    "; a spool holds only what is not shipped yet: ask the running agent, http://HOST:9464, or"
                    " where it ships to"
                )
            raise UnreadError("; ".join((missing, *unread))) if unread else UsageError(missing)
        for words in unread:
            complain(printable(f"{asked}: {words}"))

    def _last(self, words: Collection[str], wanted: Callable[[Told], bool]) -> list[Told]:
        """Give the last state of the findings that are wanted, whose lines have one of the words."""
        newest: dict[str, Told] = {}
        sought = [x.encode("ascii", "ignore") for x in words]
        for line in self._lines:
            if not any(x in line for x in sought):
                continue
            try:
                data = decode(line)
            except LaterVersionError as error:
                self._later[str(error)] = None
                continue
            except ContractError:
                continue
            if data.get("finding_id") and wanted(data):
                newest[str(data["finding_id"])] = data
        return sorted(newest.values(), key=lambda x: int(str(x["opened_at_us"])))


@dataclass(frozen=True, slots=True)
class Known:
    """An incident, and where it is."""

    incident: Incident[Finding]
    namespace: str  # empty: outside Kubernetes
    pod: str
    seen_us: int  # when it was last read, microseconds since the epoch
    state_dir: Path | None  # on this machine
    others: tuple[
        Incident[Finding], ...
    ] = ()  # open on the same pod, about state that the next start takes as it is


def known_of(asked: str, source: str | None, state_dir: Path | None, config: Config) -> Known:
    """Find an incident in what was recorded, or without a source by reading the state directory.

    Raises `UsageError`: there is no such incident, or neither was given. Raises `UnreadError`: see `Story`.
    """
    if source is not None:
        story = Story(source, config)
        incident = story.incident(asked)
        story.complain_of_unread(asked, nothing=incident is None)
        assert incident is not None
        others = _others(incident, story.about(incident.application_id))
        return Known(incident, *story.place_of(incident), state_dir, others)
    if state_dir is None:
        raise UsageError(f"{asked}: give SOURCE, where it is recorded, or --state-dir to read the state")
    _, findings, now_us = read_once(state_dir, config)
    found = gather(findings, config.applications.accepts)
    for incident in found:
        if asked == incident.id or any(asked == x.id for x in incident.members):
            pod = config.agent.pod or "this host"
            return Known(incident, config.agent.namespace, pod, now_us, state_dir, _others(incident, found))
    raise UsageError(
        f"{asked}: a scan of {state_dir} finds no such incident; give the same --set options as for `scan`"
    )


def _others(incident: Incident[Finding], found: Iterable[Incident[Finding]]) -> tuple[Incident[Finding], ...]:
    return tuple(
        x for x in found
        if x.id != incident.id and x.application_id == incident.application_id
        and (x.pods == incident.pods or not {*x.pods}.isdisjoint(incident.pods))
        and x.status is Status.OPEN and x.severity is not Severity.INFO
        and x.remedy is not Remedy.OTHER and not x.lead.lasting
    )  # fmt: skip


def listing(address: str, found: Iterable[Incident[Finding]]) -> str:
    """List incidents by id."""
    lines = []
    for one in found:
        detectors = ", ".join(dict.fromkeys(x.detector for _, x in one.findings))
        since = rfc3339(one.since_us)[:19].replace("T", " ")
        said = f"{one.id}  {one.status:<9}{one.severity:<9} since {since} UTC  {', '.join(one.pods)}  {detectors}"
        lines.append(f"{printable(said)}\n")
    count = f"{len(lines)} incident{'' if len(lines) == 1 else 's'}"
    return f"{address}: {count}, open ones first; statewarden explain ID --events SOURCE\n\n{''.join(lines)}"


def incidents(found: Iterable[Told]) -> list[Incident[Finding]]:
    """Put recorded findings together, each with its pod."""
    rows = list(found)
    links = {str(x["finding_id"]): Link(pod=str(x.get("pod") or "")) for x in rows}
    return gather(map(_with_evidence, rows), link=lambda x: links[x.id])


def _incident_of(found: Told) -> str:
    return str(found.get("incident_id") or incident_of(str(found["finding_id"])))


def _with_evidence(found: Told) -> Finding:
    steps = found.get("evidence")
    chain = tuple(
        Evidence(_time_us(str(x["at"])), str(x["what"]), str(x["where"]))
        for x in (steps if isinstance(steps, list) else ())
    )
    return replace(read_back(found), evidence=chain)


def _time_us(text: str) -> int:
    """Read a time of evidence; 0 where it is none, such as of a clock that is broken."""
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1_000_000)
    except ValueError:
        return 0
