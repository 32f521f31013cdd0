"""Incidents that are known: from what agents recorded, or from a reading of a state directory."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from agent.cli.offline import read_once
from agent.cli.output import is_undecided
from agent.cli.streams import complain
from agent.config import Config
from agent.contract.audited import FleetFinding, read
from agent.contract.codec import ContractError, decode, parse_us, printable, rfc3339
from agent.contract.events import Severity, Status
from agent.contract.finding import Evidence, last_words, read_back
from agent.contract.grouping import Link
from agent.contract.incidents import Incident, gather
from agent.contract.levels import Counted
from agent.contract.reporting import SILENT_AFTER_S
from agent.contract.units import Remedy
from agent.contract.whereabouts import heirs
from agent.engine.one_reading import plural
from agent.errors import UnreadError, UsageError

Told = Mapping[str, object]
"""A finding as an agent's event or the table of an audit says it."""

_BOOT = re.compile(rb'("pod_uid":\s*"[^"]*",\s*"boot_id":\s*"[^"]*"),\s*"sequence":\s*(\d+)')
"""As `Encoder` writes it: heartbeats are most of what there is. Of another spelling each is read."""


class RecordedStory:
    """What one source tells: its incidents, and what of it could not be read."""

    def __init__(self, source: str, config: Config) -> None:
        """Read all of it. Raises `UsageError`: there is no such source. Raises `UnreadError`: it does not answer."""
        self._source = source
        self._unread: list[str] = []
        self._is_spool = False
        self._unread_lines: list[str] = []  # why each was not read
        self._counted: dict[tuple[str, str], dict[str, Counted]] = {}  # by namespace and pod, by boot
        # one that was cut off may have either
        is_audit = any(Path(source, x).is_file() for x in ("_audit.json", "incidents.jsonl"))
        found = self._audited() if is_audit else self._recorded(config)
        self._incidents = gather(map(_with_evidence, found), link=lambda x: x.link)

    def incident(self, asked: str) -> Incident[Any] | None:
        """Give the incident of this id, or of a finding of this id, the worst if it is in several namespaces.

        None = there is none.
        """
        named = [x for x in self._incidents if asked in (x.id, *x.absorbed, *(y.id for y in x.members))]
        others = sorted({x.namespace for x in named[1:]} - {x.namespace for x in named[:1]})
        if others:
            complain(
                printable(
                    f"{asked}: this is of namespace {named[0].namespace or '(none)'}; also in"
                    f" {', '.join(x or '(none)' for x in others)}"
                )
            )
        return named[0] if named else None

    def about(self, address: str) -> list[Incident[Any]]:
        """Give all incidents about an application, or about a task (`APPLICATION/TASK`), the worst first."""
        return [
            x for x in self._incidents
            if address in (x.application_id, *(f"{x.application_id}/{task}" for task in x.tasks))
        ]  # fmt: skip

    @property
    def unread(self) -> list[str]:
        """Say what could not be read: the end of an incident may be there, or one that comes first."""
        lines = self._unread_lines
        more = [f"{plural(len(lines), 'event')} not read, the first: {lines[0]}"] if lines else []
        return [*self._unread, *more]

    def complain_of_unread(self, asked: str, *, nothing: bool) -> None:
        """Say what could not be read. Raises `UsageError`, or `UnreadError` where some was not: there is `nothing`."""
        unread = self.unread
        if nothing:
            missing = f"{asked}: no such finding, incident, application or task in {self._source}"
            missing += "; `statewarden explain APPLICATION --events SOURCE` lists those of an application"
            if self._is_spool:
                missing += (
                    "; a spool holds only what is not shipped yet: ask the running agent, http://HOST:9464, or"
                    " where it ships to"
                )
            raise UnreadError("; ".join((missing, *unread))) if unread else UsageError(missing)
        for words in unread:
            complain(printable(f"{asked}: {words}"))

    def _audited(self) -> list[FleetFinding]:
        """Read what an audit found: agents' findings, and what rules add, settle and put first."""
        try:
            lines = Path(self._source, "findings.jsonl").read_text("ascii").splitlines()
            rows = [json.loads(line) for line in lines]
            if all("remedy" in row for row in rows):
                self._unread += self._lacking()
                return [read(row) for row in rows]
            why = "of another version"
        except (OSError, ValueError, KeyError, TypeError):
            why = "not to be read"
        raise UnreadError(f"{self._source}: findings.jsonl is {why}; run an audit again")

    def _lacking(self) -> Iterator[str]:
        """Say what the audit did not read; without its marker one is being written, or was cut off."""
        marker = Path(self._source, "_SUCCESS.json")
        if not marker.is_file():
            yield f"{self._source}: no audit has finished there (_SUCCESS.json is missing)"
        elif lacking := json.loads(marker.read_text("ascii")).get("lacking"):
            yield str(lacking)

    def _recorded(self, config: Config) -> list[FleetFinding]:
        """Read the last word about each finding in what agents recorded."""
        from agent.cli.recorded import Recorded  # it loads what reads from a network

        recorded = Recorded(self._source, config)
        last = last_words(self._findings(recorded.lines()), _about, _when)
        findings = [self._settled(x) for x in last]
        self._is_spool = recorded.is_spool
        if recorded.unread:
            path, why = next(iter(recorded.unread.items()))
            count_of = f"{len(recorded.unread)} of {recorded.segments} segments"
            self._unread.append(f"{count_of} can't be read and were passed over, the first: {path}: {why}")
        self._unread += self._missed(findings)
        return [_of_an_agent(x) for x in self._followed(findings, config)]

    def _findings(self, lines: Iterable[bytes]) -> Iterator[Told]:
        """Give the findings, and keep what heartbeats count: of each boot the newest, of which alone all is read."""
        beats: dict[bytes, tuple[int, bytes]] = {}
        for line in lines:
            beat = _BOOT.search(line) if b'"open_criticals"' in line else None
            is_cut = not line.endswith(b"}")  # it may have been a finding
            if beat and not is_cut:
                beats[beat[1]] = max(beats.get(beat[1], (0, b"")), (int(beat[2]), line))
            elif line and (b'"finding_id"' in line or b'"open_criticals"' in line or is_cut):
                told = self._decoded(line)
                if told and "finding_id" in told:
                    yield told
                elif told:
                    self._count(told)
        for _, line in beats.values():
            if told := self._decoded(line):
                self._count(told)

    def _count(self, said: Mapping[str, Any]) -> None:
        if said.get("open_criticals") is not None:
            numbers = said["open_criticals"], said.get("open_warnings") or 0
            level = Counted(*_when(said), *numbers, said.get("open_ids") or ())
            boots = self._counted.setdefault(_place(said), {})
            boots[level.boot] = max(boots.get(level.boot, level), level, key=lambda x: x.sequence)

    def _decoded(self, line: bytes) -> Told | None:
        try:
            return decode(line)
        except ContractError as error:
            self._unread_lines.append(str(error))
            return None

    def _settled(self, told: Told) -> Told:
        """Close what a later heartbeat of its boot no longer names: the event of its end is lost."""
        boot, sequence, _ = _when(told)
        level = self._counted.get(_place(told), {}).get(boot)
        if level is None or not _is_urgent(told) or not level.ends(str(told["finding_id"]), boot, sequence):
            return told
        over = {"status": Status.RESOLVED.value, "resolved_at_us": level.at_us, "observed_at_us": level.at_us}
        return {**told, **over}

    def _followed(self, findings: list[Told], config: Config) -> list[Told]:
        """Say of the pod that got its volume what is open of a store whose own pod is silent."""
        last_us = {x: max(y.at_us for y in boots.values()) for x, boots in self._counted.items()}
        silent_us = max(last_us.values(), default=0) - SILENT_AFTER_S * 1_000_000
        lost = [x for x in findings if _is_urgent(x) and last_us.get(_place(x), silent_us) < silent_us]
        wanted = {str(x["identity"]) for x in lost if x.get("identity")}
        if not wanted:
            return findings
        seen = self._sightings(wanted, config)
        there = {_about(x) for x in findings}
        for x in lost:
            key = _namespace_of(x), x.get("task_id"), x.get("identity")
            new = heirs(str(x.get("pod")), seen[key], last_us[_place(x)])
            if new:
                findings.remove(x)
                moved = [{**x, "pod": pod} for pod, _ in new]
                findings += [y for y in moved if _about(y) not in there]
        return findings

    def _sightings(self, wanted: set[str], config: Config) -> Mapping[tuple[object, ...], list[_Sighting]]:
        """Read it once more: when which pod showed these stores, by namespace, task and IDENTITY."""
        from agent.cli.recorded import Recorded

        seen: dict[tuple[object, ...], list[_Sighting]] = defaultdict(list)
        needles = [json.dumps(x)[1:-1].encode("ascii") for x in wanted]  # as lines have it
        for line in Recorded(self._source, config).lines():
            if b'"finding_id"' not in line and any(x in line for x in needles):
                with suppress(ContractError):  # told by the first reading
                    told: Any = decode(line)
                    pod, at_us = str(told.get("pod")), told["observed_at_us"]
                    stores = (told, *(told.get("stores") or ()))
                    for one in wanted & {x.get("identity") for x in stores}:
                        key = _namespace_of(told), told.get("task_id"), one
                        seen[key].append(_Sighting(pod, at_us, at_us))
        return seen

    def _missed(self, findings: Iterable[Told]) -> Iterator[str]:
        """Say of which pods open findings are not there, by their newest heartbeats."""
        own: dict[tuple[str, str], list[Told]] = defaultdict(list)
        for x in findings:
            own[_place(x)].append(x)
        for place, boots in sorted(self._counted.items()):
            level = max(boots.values(), key=lambda x: (x.at_us, x.sequence))
            known = [x for x in own[place] if _is_urgent(x) or _is_later(x, level)]
            criticals = {str(x["finding_id"]) for x in known if x["severity"] == Severity.CRITICAL}
            more = sum(level.missed(criticals, {str(x["finding_id"]) for x in known}))
            if more:
                is_, what = ("is", "finding") if more == 1 else ("are", "findings")
                yield f"{place[1]}: its agent counts {more} open {what} that {is_} not in {self._source}"


@dataclass(frozen=True, slots=True)
class FoundIncident:
    """An incident, and where it is."""

    incident: Incident[Any]
    namespace: str  # empty: outside Kubernetes
    pod: str
    seen_us: int  # when it was last read, microseconds since the epoch
    state_dir: Path | None  # on this machine
    others: tuple[Incident[Any], ...] = ()
    """Open on the same pod, about state that the next start takes as it is."""


def known_of(asked: str, source: str | None, state_dir: Path | None, config: Config) -> FoundIncident:
    """Find an incident in what was recorded, or without a source by reading the state directory.

    Raises `UsageError`: there is no such incident, or neither was given. Raises `UnreadError`: not all was read.
    """
    if source is not None:
        story = RecordedStory(source, config)
        incident = story.incident(asked)
        if incident is None or story.unread:
            story.complain_of_unread(asked, nothing=incident is None)
            raise UnreadError(
                f"{asked}: no script: what was not read may say that it is over, or what comes first"
            )
        others = _others(incident, story.about(incident.application_id))
        return FoundIncident(incident, *_place_of(incident), state_dir, others)
    if state_dir is None:
        raise UsageError(f"{asked}: give SOURCE, where it is recorded, or --state-dir to read the state")
    _, findings, now_us = read_once(state_dir, config)
    found = gather(findings, config.applications.accepts)
    for incident in found:
        if asked == incident.id or any(asked == x.id for x in incident.members):
            pod = config.agent.pod or "this host"
            return FoundIncident(
                incident, config.agent.namespace, pod, now_us, state_dir, _others(incident, found)
            )
    raise UsageError(
        f"{asked}: a scan of {state_dir} finds no such incident; give the same --set options as for `scan`"
    )


def _others(incident: Incident[Any], found: Iterable[Incident[Any]]) -> tuple[Incident[Any], ...]:
    return tuple(
        x for x in found
        if x.id != incident.id and x.application_id == incident.application_id and x.namespace == incident.namespace
        and (x.pods == incident.pods or not {*x.pods}.isdisjoint(incident.pods))
        and x.status is Status.OPEN and x.severity is not Severity.INFO
        and (x.remedy is not Remedy.OTHER or is_undecided(x)) and not x.lead.lasting
    )  # fmt: skip


def listing(address: str, found: Iterable[Incident[Any]]) -> str:
    """List incidents by id."""
    lines = []
    for one in found:
        detectors = ", ".join(dict.fromkeys(x.detector for _, x in one.findings))
        since = rfc3339(one.since_us)[:19].replace("T", " ")
        said = f"{one.id}  {one.status:<9}{one.severity:<9} since {since} UTC  {', '.join(one.pods)}  {detectors}"
        lines.append(f"{printable(said)}\n")
    count = f"{len(lines)} incident{'' if len(lines) == 1 else 's'}"
    return f"{address}: {count}, open ones first; statewarden explain ID --events SOURCE\n\n{''.join(lines)}"


def _place_of(incident: Incident[FleetFinding]) -> tuple[str, str, int]:
    """Say where an incident is, and when its pod said the last of it: namespace, pod, microseconds."""
    lead = incident.lead.row
    newest_us = max(_seen_us(x.row) for _, x in incident.findings if x.row["pod"] == lead["pod"])
    return str(lead.get("namespace") or "").rpartition("/")[2], str(lead["pod"]), newest_us


def _seen_us(told: Told) -> int:
    if "observed_at_us" in told:
        return int(str(told["observed_at_us"]))
    return parse_us(told["seen_at"] or told["opened_at"]) or 0


def _namespace_of(told: Told) -> str:
    """Name the namespace as the tables of an audit do: the same names in another one are other pods."""
    return "/".join(str(x) for x in (told.get("cluster"), told.get("namespace") or "") if x is not None)


def _place(told: Told) -> tuple[str, str]:
    return _namespace_of(told), str(told.get("pod"))


def _is_urgent(told: Told) -> bool:
    return told["status"] == Status.OPEN and told["severity"] != Severity.INFO


def _is_later(told: Told, level: Counted) -> bool:
    return told["severity"] != Severity.INFO and level.is_before(*_when(told))


class _Sighting(NamedTuple):
    pod: str
    from_us: int
    to_us: int


def _about(told: Told) -> tuple[str, str, str]:
    return *_place(told), str(told["finding_id"])


def _when(told: Told) -> tuple[str, int, int]:
    at_us, sequence = (int(str(told.get(x) or 0)) for x in ("observed_at_us", "sequence"))
    return str(told.get("boot_id")), sequence, at_us


def _of_an_agent(told: Told) -> FleetFinding:
    """Read a finding from its event, with its pod."""
    one = read_back(told)
    link = Link(namespace=_namespace_of(told), pod=str(told.get("pod") or ""))
    return FleetFinding(**{x.name: getattr(one, x.name) for x in fields(one)}, link=link, row=told)


def _with_evidence(found: FleetFinding) -> FleetFinding:
    steps = found.row.get("evidence")
    chain = tuple(
        Evidence(parse_us(x["at"]) or 0, str(x["what"]), str(x["where"]))
        for x in (steps if isinstance(steps, list) else ())
    )
    return replace(found, evidence=chain)
