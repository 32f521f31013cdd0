"""Render docs/tables.md from the schemas of the rollup's output tables."""

from __future__ import annotations

from pyspark.sql.types import StructType

from spark_rollup import schemas

TABLES: dict[str, tuple[StructType, str]] = {
    "findings": (schemas.FINDING,
        "one row per finding of a rule or of an agent alone; also one line each in `findings.jsonl`"),
    "incidents": (schemas.INCIDENT,
        "one row per incident, the worst first; also one line each in `incidents.jsonl`; see "
        "[incidents](incidents.md)"),
    "timelines": (schemas.TIMELINE, "one row per interval (half-open) or mark (`to_us` null) of a task on a pod"),
    "coverage": (schemas.COVERAGE, "one row per pod: how much of its time was really watched"),
    "pods": (schemas.PODS, "one row per pod, as last seen"),
    "restarts": (schemas.RESTARTS,
        "one row per copy of a task that is or was just held, or is damaged (no task: about the application on that "
        "pod): may its pod be restarted?"),
    "churn": (schemas.CHURN, "one row per task and hour in which something moved"),
    "verdicts": (schemas.VERDICT, "of `verify`, one row per copy of a store; see [digests](digests.md#verdicts)"),
    "quarantine": (schemas.QUARANTINE, "one row per line (or file) of the input that was not used, and why"),
}  # fmt: skip

MEANINGS = {
    "id": "the same in every run",
    "detector": "the rule",
    "level": "`exposure`, `damage`, `event` or `self`",
    "severity": "`info`, `warning` or `critical`",
    "confidence": "`confirmed`, `suspected`, or `unknown` where no agent watched",
    "status": "`open` or `resolved`",
    "pod": "null = the whole task or application",
    "opened_at": "RFC 3339, UTC",
    "upstream": "upstream issues",
    "affected": "whether the release has the bug: `yes`, `possibly`, `no`",
    "missing_facts": "settings that would decide more",
    "evidence": "the chain, in time order: at, what, where",
    "next_action": "what is safe to do next",
    "pods": "all pods that the finding names",
    "confirms": "ids of agents' findings that it confirms",
    "refutes": "ids of agents' findings that it refutes",
    "explains": "ids of agents' findings that it takes into account",
    "resolved_at": "RFC 3339, UTC; null = open, or not known",
    "mechanism": "what goes wrong; see [mechanisms](incidents.md#mechanisms)",
    "incident_id": "the incident that it belongs to, or else the oldest one that it is evidence of",
    "lineage": "findings of one mechanism that have one of these in common are one incident while they last",
    "local_incidents": "agents' incidents that it is about: which, how (`is`, `confirms`, `refutes`, `explains`), of "
    "which mechanism, since when (microseconds since the epoch)",
    "identity": "RocksDB IDENTITY of the store; of some rules what else tells their findings apart",
    "remedy": "what its step does with the task's directory: `restore`, `check-first`, `keep` or `other`",
    "seen_at": "RFC 3339, UTC: when the agent said it; null = a rule alone says it",
    "absorbed": "ids of agents' incidents in it: each leads here",
    "title": "the mechanism, for people",
    "cluster": "empty = not known; it is in `namespace`, too",
    "tasks": "tasks concerned; none = the application or the pod as a whole",
    "stores": "stores concerned, where findings name them",
    "since": "RFC 3339, UTC",
    "ended": "RFC 3339, UTC; null = it is open",
    "sentence": "what is wrong, where",
    "lane": "`holder`, `cleaner`, `process`, `incarnation`, `unknown`; marks: `checkpoint`, `created`, `size`, ...",
    "from_us": "microseconds since the epoch",
    "to_us": "microseconds since the epoch",
    "offset": "changelog offset",
    "puts": "highest sequence number flushed",
    "bytes": "live SST bytes",
    "first_seen": "when it was first heard, as far as the look-back goes",
    "lost_events": "missing sequence numbers that no agent announced",
    "unknown_seconds": "time in which no agent watched",
    "watched_ratio": "1 - unknown / span; null without a span",
    "agent_state": "`watching`, `stopped` or `silent`",
    "reported_by": "`fleet`: a rule; `agent`: an agent's open critical or warning that no rule settles",
    "answer": "the worst of `kinds`",
    "topic": "the store's changelog",
    "state": "how the store was left: `closed`, `open`, `killed`",
    "made_at": "when the digest was made; RFC 3339, UTC",
    "entries": "of the copy",
    "verdict": "`equal`, `differs`, `partly-equal` or `undecidable`",
    "why": "why not everything is decided; null = it is",
    "buckets": "that either side has",
    "equal": "buckets that are equal",
    "differing": "buckets that differ",
    "unknown": "buckets that cannot be judged",
    "missing": "keys that the copy lacks, at least",
    "extra": "keys that it should not have, at least",
    "different": "keys with another value, at least",
    "kinds": "`damaged`, `clean-stop-only`, `keep`, `unknown`, `restore`, `safe`, `not-running`; see "
    "[safe-to-restart](rollup.md#answers-of-safe-to-restart)",
    "follow": "detectors and rules whose open critical finding has to be followed first",
    "first_action": "what those findings ask for",
    "doubt": "why the present state of the copy is unknown; null = it is watched",
    "healthy_elsewhere": "pods with a healthy, recent copy",
    "ill_elsewhere": "pods with a copy that is none, and why",
    "restore_bytes": "size of what has to be restored where no copy is elsewhere",
    "unclean_stop": "what happens to this copy if the process is killed",
    "hour_us": "start of the hour, microseconds since the epoch",
    "restored_bytes": "bytes of copies that were recreated",
    "reason": "slug",
    "line": "the first 2,000 characters; null for a file",
}


def render_tables_page(page: str) -> str:
    """Render the tables; what is before them is written by hand."""
    parts = [f"{page.partition(f'## `{next(iter(TABLES))}`')[0].rstrip()}\n"]
    told: set[str] = set()  # a column is explained where it comes first
    for name, (schema, grain) in TABLES.items():
        types = {field.name: field.dataType.simpleString().partition("<")[0] for field in schema.fields}
        new = [x for x in types if x in MEANINGS and x not in told]
        told.update(new)
        rows = "\n".join(f"| `{x}` | {types[x]} | {MEANINGS[x]} |" for x in new)
        plain = ", ".join(f"`{x}` ({types[x]})" for x in types if x not in new)
        also = f"\nAlso {plain}.\n" if plain else ""
        parts.append(
            f"\n## `{name}`\n\n{grain[0].upper()}{grain[1:].rstrip('?')}.\n\n"
            f"| column | type | meaning |\n|---|---|---|\n{rows}\n{also}"
        )
    return "".join(parts)
