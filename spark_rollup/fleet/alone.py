"""What rules, `verify` and agents say of one another: refuted, settled, or left alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from agent.contract.audited import AGENT
from agent.contract.codec import rfc3339
from agent.contract.events import Confidence, Level, Severity, Status
from agent.contract.finding import REPAIRED
from agent.contract.grouping import incident_of
from spark_rollup.fleet.application import Application
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.rows import Said

RELATIONS = ("confirms", "refutes", "explains")
"""Columns of `FINDING` in which a finding names agents' findings."""


def refutations(found: Iterable[Row]) -> Mapping[str, set[str]]:
    """Collect where agents' findings are refuted: pods by finding id."""
    pods: dict[str, set[str]] = defaultdict(set)
    for row in found:
        for one in row["refutes"]:
            pods[one].update(row["pods"])
    return pods


def is_refuted(identity: str | None, pod: str | None, refuted_on: Collection[str] | None) -> bool:
    """Return whether a finding is what was refuted on some pods (None = nothing was).

    Agents on several pods may have given one id to what they found. Of one incarnation of a store it is the same;
    without an identity only a word about that pod is about it.
    """
    return refuted_on is not None and (identity is not None or pod in refuted_on)


def wrong_copies(proofs: Iterable[Row]) -> set[tuple[str, str]]:
    """List the copies (task, pod) that their changelog proves wrong.

    Of two that differ from each other it is not known which.
    """
    proved = (Level.DAMAGE.value, Status.OPEN.value, Severity.CRITICAL.value)
    return {
        (x["task_id"], x["pod"]) for x in proofs
        if (x["level"], x["status"], x["severity"]) == proved and x["task_id"] is not None and len(x["pods"]) == 1
    }  # fmt: skip


def settled(app: Application, found: list[Row]) -> list[Row]:
    """Close what only says again what agents suspected, where `verify` refutes all of that.

    A rule with evidence of another mechanism has more to say than its agents; and so has what is confirmed.
    """
    proofs = app.proofs or []
    refuted_at: dict[str, str] = {}
    for row in proofs:
        for one in row["refutes"]:
            refuted_at[one] = max(row["opened_at"], refuted_at.get(one, row["opened_at"]))
    pods = refutations(proofs)
    said: dict[str, set[tuple[str, str | None]]] = defaultdict(set)
    for x in app.said:
        said[x.finding_id].add((x.mechanism or x.detector, x.identity))

    def is_wrong(row: Row, one: str) -> bool:
        known = said.get(one) or {(row["mechanism"], None)}
        return all(
            is_refuted(identity, row["pod"], pods.get(one)) and mechanism == row["mechanism"]
            for mechanism, identity in known
        )

    for row in found:
        unsure = row["status"] == Status.OPEN.value and row["confidence"] != Confidence.CONFIRMED.value
        if unsure and row["confirms"] and all(is_wrong(row, one) for one in row["confirms"]):
            row["status"] = Status.RESOLVED.value
            row["resolved_at"] = max(refuted_at[one] for one in row["confirms"])
    return found


def alone(app: Application, found: Iterable[Row]) -> Iterator[Row]:
    """List agents' open criticals and warnings that the rules' findings leave as they are: they count like those.

    Settled is what a rule refutes, and what an open finding that is at least as severe confirms or takes into account.
    A quieter one is no answer: that a copy is missing does not make the damage of the other one known. Beside these
    stands what was repaired, with its proof: nothing else says how it ended.
    """
    found = list(found)
    refuted = refutations(found)
    repaired = {x.incident_id for x in app.local if x.detector == REPAIRED}
    answered: dict[str, int] = {}
    for row in found:
        rank = Severity(row["severity"]).rank if row["status"] == Status.OPEN.value else -1
        for one in (*row["confirms"], *row["explains"]):
            answered[one] = max(answered.get(one, rank), rank)
    for x in app.local:
        urgent = x.status == Status.OPEN.value and x.severity != Severity.INFO.value
        settled_here = is_refuted(x.identity, x.pod, refuted.get(x.finding_id))
        is_left = urgent and answered.get(x.finding_id, -1) < Severity(x.severity).rank
        is_over = x.status != Status.OPEN.value and x.finding_id not in answered
        is_proved = (x.incident_id or incident_of(x.finding_id)) in repaired
        if not settled_here and (is_left or (is_over and is_proved)):
            yield _row(app, x)


def _row(app: Application, x: Said) -> Row:
    return {
        "id": x.finding_id, "detector": x.detector, "level": x.level, "severity": x.severity,
        "confidence": x.confidence, "status": x.status,
        "namespace": app.namespace, "application_id": app.name, "task_id": x.task_id, "store": x.store, "pod": x.pod,
        "opened_at": rfc3339(x.opened_at_us), "upstream": x.upstream, "affected": x.affected,
        "missing_facts": x.missing_facts, "summary": x.summary, "evidence": x.evidence, "next_action": x.next_action,
        "pods": [x.pod], "confirms": [], "refutes": [], "explains": [], "reported_by": AGENT,
        "resolved_at": None if x.resolved_at_us is None else rfc3339(x.resolved_at_us),
        "mechanism": x.mechanism or x.detector, "incident_id": x.incident_id, "lineage": None, "local_incidents": None,
        "identity": x.identity, "remedy": x.remedy, "seen_at": rfc3339(x.observed_at_us),
    }  # fmt: skip


def with_local_incidents(app: Application, found: list[Row]) -> list[Row]:
    """Add the agents' incidents that a finding is about: those of the findings that it names, of an agent's its own.

    An agent of contract 1.0 or 1.1 says nothing of incidents: each of its findings is one by itself.
    """
    of: dict[str, set[tuple[str, str]]] = defaultdict(set)
    since_us: dict[str, int] = {}
    for x in app.said:
        incident = incident_of(x.finding_id) if x.incident_id is None else x.incident_id
        of[x.finding_id].add((incident, x.mechanism or x.detector))
        since_us[incident] = min(x.opened_at_us, since_us.get(incident, x.opened_at_us))
    named: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in found:
        named[row["id"]].update((one, relation) for relation in RELATIONS for one in row[relation])
        if row["reported_by"] == AGENT:
            named[row["id"]].add((row["id"], "is"))
    keys = ("incident_id", "relation", "mechanism", "since_us")
    for row in found:
        about = sorted(
            {
                (incident, how, mechanism)
                for one, how in named[row["id"]]
                for incident, mechanism in of.get(one, ())
            }
        )
        listed = [dict(zip(keys, (*one, since_us[one[0]]), strict=True)) for one in about]
        row["local_incidents"] = listed or None
    return found
