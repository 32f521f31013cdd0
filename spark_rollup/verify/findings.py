"""Findings of digests: `state-differs` and `state-equal` (against the changelog), `replicas-differ` (another copy)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from agent.contract.events import Confidence, Severity, Status
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.words import finding, rfc3339
from spark_rollup.proofs import replicas_differ, state_differs, state_equal
from spark_rollup.schemas import FINDING
from spark_rollup.verify.digests import Copy
from spark_rollup.verify.replicas import Pair
from spark_rollup.verify.suspicions import Refuted, Suspicion, proved, refuted
from spark_rollup.verify.verdicts import Verdict, Word

_SEGMENTS_NAMED = 5
_ORDER = ("severity", "detector", "namespace", "application_id", "task_id", "store", "pod")


def findings(
    judged: Sequence[Verdict],
    differences: Iterable[tuple[Pair, Mapping[str, int]]],
    suspicions: Sequence[Suspicion],
    brokers: str | None,
) -> list[Row]:
    """Give what is to be reported, as rows of `FINDING`.

    That is each copy that differs, each pair of which the changelog does not show the wrong one, and each store or task
    of which a suspicion is refuted.
    """
    wrong = [one for one in judged if one.word is Word.DIFFERS]
    numbers = {one.source.copy for one in wrong}
    borne_out = proved(judged, suspicions)
    found = [_state(one, borne_out.get(one.source.copy, ()), brokers) for one in wrong]
    found += [
        _replicas(pair, counts, brokers)
        for pair, counts in differences
        if not {pair.one.copy, pair.other.copy} & numbers
    ]
    found += [_equal(one) for one in refuted(judged, suspicions)]
    found.sort(key=lambda row: [row[name] or "" for name in _ORDER])
    return [{name: row[name] for name in FINDING.names} for row in found]


def repair(one: Verdict, brokers: str | None) -> str:
    """Say what to do about a copy that differs: nothing is removed that may be the last to have what is lost."""
    copy = one.source
    unless = (
        "If extra keys are of an aborted transaction and no process was killed, the changelog has lost them, and this "
        "copy is the last that has them: do not remove it, see the runbook. Otherwise "
        if one.counts.get("extra")
        else "Then "
    )
    return (
        f"Keep a copy of {copy.task_id} on {copy.pod} before anything else, and name the keys there: "
        f"{_command(copy, brokers)}. {unless}stop the instance, remove the store's directories with the task's "
        f"checkpoint, and let it restore."
    )


def _finding(meta: RuleMeta, copy: Copy, evidence: Sequence[Row], **columns: object) -> Row:
    """Make the row of a finding about a copy; `columns` as `finding` takes them."""
    made_us = columns.pop("made_us", copy.made_us)
    place = {name: getattr(copy, name) for name in ("task_id", "store", "pod")}
    rest = {"pods": [copy.pod], "evidence": list(evidence), "ended_us": made_us} | place | columns
    return finding(meta, (copy.namespace, copy.application_id), int(str(made_us)), **rest)


def _state(one: Verdict, borne_out: Sequence[Suspicion], brokers: str | None) -> Row:
    copy = one.source
    differing = (
        f"{one.counts['differing']} of {one.counts['buckets']} buckets differ from those of the changelog"
    )
    return _finding(
        state_differs.META,
        copy,
        [*map(_suspected, borne_out), _evidence(copy), _entry(copy.made_us, differing, copy.log)],
        summary=f"{copy.task_id}, store {copy.store}: against {copy.log} at offset {copy.last_offset}, {one.found()} "
        f"of {copy.entries} entries on {copy.pod}{_where(one)}{_doubted(copy.doubt)}",
        next_action=repair(one, brokers),
        confirms=[suspicion.finding_id for suspicion in borne_out],
        **_grade(copy.doubt),
    )


def _equal(found: Refuted) -> Row:
    first, copies = found.suspicions[0], [one.source for one in found.equal]
    stores = ", ".join(f"{copy.store} at offset {copy.last_offset} of {copy.log}" for copy in copies)
    named = ", ".join(sorted({suspicion.detector for suspicion in found.suspicions}))
    every = "every store holds" if first.store is None else "the store holds"
    _, _, task, pod = first.home
    return _finding(
        state_equal.META,
        copies[0],
        [*map(_suspected, found.suspicions), *map(_evidence, copies)],
        store=first.store,
        summary=f"{task} on {pod}: {every} what its changelog says ({stores}): {named} is refuted",
        next_action="Nothing: a restoration would give the same content.",
        status=Status.RESOLVED.value,
        refutes=[suspicion.finding_id for suspicion in found.suspicions],
        made_us=max(copy.made_us for copy in copies),
    )


def _replicas(pair: Pair, counts: Mapping[str, int], brokers: str | None) -> Row:
    one, other, _ = pair
    return _finding(
        replicas_differ.META,
        one,
        [_evidence(one), _evidence(other)],
        summary=f"{one.task_id}, store {one.store}: the copies on {one.pod} and {other.pod} are at the same offset "
        f"({one.last_offset}) and do not hold the same: at least {counts['extra']} entries only on {one.pod}, "
        f"{counts['missing']} only on {other.pod}, {counts['different']} with another value{_doubted(pair.doubt)}",
        next_action="Do not fail over between them until it is known which one is right. The changelog says it, on "
        f"either pod: {_command(one, brokers)}",
        pods=[one.pod, other.pod],
        made_us=max(one.made_us, other.made_us),
        **_grade(pair.doubt),
    )


def _grade(doubt: str | None) -> dict[str, str]:
    if doubt is None:
        return {}
    return {"severity": Severity.WARNING.value, "confidence": Confidence.SUSPECTED.value}


def _doubted(doubt: str | None) -> str:
    return "" if doubt is None else f" ({doubt})"


def _entry(at_us: int, what: str, where: str) -> Row:
    return {"at": rfc3339(at_us), "what": what, "where": where}


def _evidence(copy: Copy) -> Row:
    what = f"digest of {copy.pod}: {copy.entries} entries at offset {copy.last_offset}, {copy.state.value}"
    return _entry(copy.made_us, what, f"{copy.application_id}/{copy.task_id}/{copy.store}")


def _suspected(one: Suspicion) -> Row:
    return _entry(one.opened_us, f"{one.detector}: suspected by the agent", f"finding {one.finding_id}")


def _where(one: Verdict) -> str:
    if not one.segments:
        return ""
    named = ", ".join(map(str, one.segments[:_SEGMENTS_NAMED]))
    more = len(one.segments) - _SEGMENTS_NAMED
    return f", segments {named}{f' and {more} more' if more > 0 else ''}"


def _command(copy: Copy, brokers: str | None) -> str:
    """Write the command that names the keys."""
    words = [
        "statewarden", "verify", "STATE_DIR", "--bootstrap-servers", brokers or "HOST:PORT",
        "--application", copy.application_id, "--task", copy.task_id, "--store", copy.store, "--explain", "10",
    ]  # fmt: skip
    return shlex.join(words)
