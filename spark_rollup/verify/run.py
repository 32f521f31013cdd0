"""The command `verify`: digests, changelogs if there are brokers, verdicts, findings."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from agent.contract.events import Severity, Status
from spark_rollup import __version__
from spark_rollup.bronze.place import Place, place_of, size_bytes
from spark_rollup.config import check_input, is_bronze
from spark_rollup.errors import UsageError
from spark_rollup.intake.opening import Opening, opened
from spark_rollup.report.story import texts
from spark_rollup.schemas import FINDING, VERDICT
from spark_rollup.sources import changelogs
from spark_rollup.spark import needs, outputs, session
from spark_rollup.spark.rows import frame_of
from spark_rollup.verify import parts, suspicions
from spark_rollup.verify.compare import Compared, verdict
from spark_rollup.verify.digests import Copy, Digests, load
from spark_rollup.verify.findings import findings
from spark_rollup.verify.plan import Judged, plan, ranges
from spark_rollup.verify.replicas import Pair, pairs
from spark_rollup.verify.suspicions import Suspicion
from spark_rollup.verify.verdicts import Verdict, Word

RECORD_BYTES = 60
"""About what one record of a changelog takes in a shuffle; chooses how many partitions there are."""

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What decides one comparison."""

    opening: Opening  # where the digests are, and the session
    output: Path  # directory for tables and JSON lines
    now_us: int
    brokers: str | None = None  # `host:port,host:port`; None = copies are only compared with each other
    client: Mapping[str, str] = field(default_factory=dict)
    events: str | None = None
    """Bronze, or a directory with agents' segments: what agents suspect; None = those of the bronze that has the
    digests, or nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found."""

    verdicts: Sequence[Verdict]  # one for each copy; none without brokers
    compared: int  # pairs of copies that were compared with each other
    findings: Sequence[Row]
    unread: int  # number of lines that are no digests
    suspected: int = 0  # number of agents' open suspicions about the content of what was compared

    def worst_rank(self) -> int:
        """Rank the most severe finding that is open; -1 = none is."""
        rows = [row for row in self.findings if row["status"] == Status.OPEN.value]
        return max((Severity(str(row["severity"])).rank for row in rows), default=-1)


def run(options: VerifyOptions) -> Outcome:
    """Compare, and write what was found.

    Raises `RollupError`: wrong use, jars or Java missing, brokers that do not answer or refuse.
    """
    _check(options)
    kinds = [needs.KAFKA] if options.brokers else []
    kinds += [needs.S3A] if options.events and options.events.startswith("s3a://") else []
    delta = any(map(holds_tables, {options.opening.where, options.events or options.opening.where}))
    with opened(options.opening, None, kinds, delta=delta) as (spark, place):
        session.fit(spark, size_bytes(place), options.opening.conf)
        digests = load(spark, place)
        chosen, planned = pairs(digests.copies), _planned(spark, digests, options)
        judged = [one for one in planned if isinstance(one, Judged)]
        compared = _compared(spark, digests, judged, chosen, options)
        said = [
            one if isinstance(one, Verdict) else verdict(one, compared[one.source.copy, None])
            for one in planned
        ]
        counted = [(pair, compared[pair.one.copy, pair.other.copy].counts) for pair in chosen]
        differences = [(pair, counts) for pair, counts in counted if counts["differing"]]
        suspected = _suspicions(spark, place, digests, options)
        rows = findings(said, differences, suspected, options.brokers)
        _write(spark, rows, said, options.output)
    return Outcome(said, len(chosen), rows, digests.unread, len(suspected))


def _check(options: VerifyOptions) -> None:
    where, events = options.opening.where, options.events
    if "://" not in where and not Path(where).is_dir():
        raise UsageError(f"--digests {where} is not a directory")
    if events and "://" not in events:
        check_input(Path(events))


def holds_tables(where: str) -> bool:
    """Return whether a place may have Delta tables, as bronze has: it is not known of one in an object store."""
    return "://" in where or is_bronze(Path(where))


def _suspicions(
    spark: SparkSession, place: Place, digests: Digests, options: VerifyOptions
) -> list[Suspicion]:
    """Read what agents suspect; bronze that has their digests has that, too."""
    if options.events is not None:
        return suspicions.read(spark, place_of(options.events, spark), digests.copies, options.now_us)
    if is_bronze(place):
        return suspicions.read(spark, place, digests.copies, options.now_us)
    return []


def _planned(spark: SparkSession, digests: Digests, options: VerifyOptions) -> list[Judged | Verdict]:
    if not options.brokers:
        return []
    names = sorted({copy.topic for copy in digests.copies})
    topics = changelogs.describe(spark, options.brokers, options.client, names)
    return plan(digests.copies, topics, options.now_us)


def _compared(
    spark: SparkSession,
    digests: Digests,
    judged: Sequence[Judged],
    chosen: Sequence[Pair],
    options: VerifyOptions,
) -> dict[tuple[int, int | None], Compared]:
    """Compare; returns what came of it, by copy and other copy."""
    if not judged and not chosen:
        return {}
    by_first: dict[int, list[Pair]] = defaultdict(list)
    for pair in chosen:
        by_first[pair.one.copy].append(pair)
    work = parts.Work({one.source.copy: one for one in judged}, by_first)
    rows = [
        Compared(*row)
        for row in parts.compared(spark, digests, work, _records(spark, judged, options)).collect()
    ]
    return {(one.copy, one.other): one for one in rows}


def _records(spark: SparkSession, judged: Sequence[Judged], options: VerifyOptions) -> DataFrame | None:
    """Read the changelogs of copies; None = there is nothing to read."""
    if not judged:
        return None
    assert options.brokers is not None
    settled, later = ranges(judged)
    records = sum(until - first for part in (settled, later) for first, until in part.values())
    session.fit(spark, records * RECORD_BYTES, options.opening.conf)
    return parts.hashed(
        spark,
        judged,
        changelogs.read(spark, options.brokers, options.client, settled, committed=True),
        changelogs.read(spark, options.brokers, options.client, later, committed=False),
    )


def _write(spark: SparkSession, rows: Sequence[Row], judged: Sequence[Verdict], output: Path) -> None:
    """Write tables and JSON lines."""
    place = outputs.begin(output, outputs.VERIFY)
    for name, schema, lines in (
        ("findings", FINDING, rows),
        ("verdicts", VERDICT, [one.row() for one in judged]),
    ):
        table = frame_of(spark, lines, schema).coalesce(1)
        table.write.option("compression", "zstd").parquet(str(place / name))
        text = "".join(f"{json.dumps(line, ensure_ascii=True, separators=(',', ':'))}\n" for line in lines)
        (place / f"{name}.jsonl").write_text(text, encoding="ascii")
    marker = {
        "version": __version__,
        "verdicts": dict(sorted(Counter(one.word.value for one in judged).items())),
        "findings": dict(sorted(Counter(str(row["detector"]) for row in rows).items())),
    }
    (place / outputs.MARKER).write_text(json.dumps(marker, indent=2, sort_keys=True) + "\n", encoding="ascii")
    outputs.swap(output)


def readable(outcome: Outcome) -> list[str]:
    """Print for people: a count of each word, then what is not equal, then findings."""
    words = Counter(one.word for one in outcome.verdicts)
    counts = ", ".join(f"{words[word]} {word.value}" for word in Word if words[word])
    lines = [f"{len(outcome.verdicts)} copies against their changelogs: {counts}"] if outcome.verdicts else []
    pairs_of = "pair" if outcome.compared == 1 else "pairs"
    lines.append(f"{outcome.compared} {pairs_of} of copies at the same offset against each other")
    if outcome.unread:
        lines.append(f"{outcome.unread} lines are not digests of this version and were skipped")
    if outcome.suspected:
        proved, refuted = (
            len({one for row in outcome.findings for one in texts(row[word])})
            for word in ("confirms", "refutes")
        )
        what = "suspicion" if outcome.suspected == 1 else "suspicions"
        lines.append(f"{outcome.suspected} {what} of agents: {proved} proved, {refuted} refuted")
    lines += [
        f"{one.word.value:<12} {_name(one.source)}: {one.found() or one.reason}"
        for one in outcome.verdicts
        if one.word is not Word.EQUAL
    ]
    for row in outcome.findings:
        lines.append(f"{row['severity']!s:<8} {row['confidence']!s:<9} {row['detector']}: {row['summary']}")
        lines.append(f"         -> {row['next_action']}")
    return lines


def _name(copy: Copy) -> str:
    space = f"{copy.namespace}/" if copy.namespace else ""
    return f"{space}{copy.application_id} {copy.task_id} {copy.store} on {copy.pod}"
