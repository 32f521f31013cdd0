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
from spark_rollup.spark.materialize import materialize
from spark_rollup.spark.rows import rows_of
from spark_rollup.verify import kept, parts, plan, suspicions
from spark_rollup.verify.compare import Compared
from spark_rollup.verify.digests import Copy, Digests, load
from spark_rollup.verify.findings import findings
from spark_rollup.verify.replicas import Pair, differences, pairs
from spark_rollup.verify.suspicions import Suspicion
from spark_rollup.verify.verdicts import Verdict, Word, verdicts

RECORD_BYTES = 60
"""About what one record of a changelog takes in a shuffle; chooses how many partitions there are."""

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What decides one comparison.

    Args of the dataclass:
        opening: Where the digests are, and the session.
        output: Directory for tables and JSON lines.
        brokers: `host:port,host:port`; None = copies are only compared with each other.
        events: Bronze, or a directory with agents' segments: what agents suspect;
            None = those of the bronze that has the digests, or nothing.
        keep: Directory in which what changelogs said is kept for the next run; None = nothing is kept.
    """

    opening: Opening
    output: Path
    now_us: int
    brokers: str | None = None
    client: Mapping[str, str] = field(default_factory=dict)
    events: str | None = None
    keep: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found.

    Args of the dataclass:
        verdicts: One for each copy; none without brokers.
        compared: Pairs of copies that were compared with each other.
        unread: Number of lines that are no digests.
        suspected: Number of agents' open suspicions about the content of what was compared.
        again: Number of copies whose changelog was not read: an earlier run had read it up to their offsets.
    """

    verdicts: Sequence[Verdict]
    compared: int
    findings: Sequence[Row]
    unread: int
    suspected: int = 0
    again: int = 0

    def worst_rank(self) -> int:
        """Rank the most severe finding that is open; -1 = none is."""
        rows = [row for row in self.findings if row["status"] == Status.OPEN.value]
        return max((Severity(str(row["severity"])).rank for row in rows), default=-1)


def run(options: VerifyOptions) -> Outcome:
    """Compare, and write what was found.

    Raises:
        RollupError: wrong use, jars or Java missing, brokers that do not answer or refuse.
    """
    _check(options)
    kinds = [needs.KAFKA] if options.brokers else []
    kinds += [needs.S3A] if options.events and options.events.startswith("s3a://") else []
    delta = any(map(holds_tables, {options.opening.where, options.events or options.opening.where}))
    with opened(options.opening, None, kinds, delta=delta) as (spark, place):
        session.fit(spark, size_bytes(place), options.opening.conf)
        digests = load(spark, place)
        chosen, asked = pairs(digests.copies), _asked(spark, digests, options)
        compared, again = _compared(spark, digests, asked, chosen, options)
        judged, different = verdicts(asked.planned, compared), differences(chosen, compared)
        said = _suspicions(spark, place, digests, options)
        found = findings(spark, judged, different, said, options.brokers)
        rows = _write(spark, found, judged, options.output)
    return Outcome(judged, len(chosen), rows, digests.unread, len(said), again)


def _check(options: VerifyOptions) -> None:
    where, events = options.opening.where, options.events
    if "://" not in where and not Path(where).is_dir():
        raise UsageError(f"--digests {where} is not a directory")
    if events and "://" not in events:
        check_input(Path(events))
    if options.keep:
        kept.load(options.keep)


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


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is compared with changelogs."""

    planned: Sequence[plan.Planned] = ()
    topics: Mapping[str, changelogs.Topic] = field(default_factory=dict)

    @property
    def judged(self) -> list[plan.Judged]:
        """Copies that can be compared."""
        return [one for one in self.planned if isinstance(one, plan.Judged)]


def _asked(spark: SparkSession, digests: Digests, options: VerifyOptions) -> _Asked:
    if not options.brokers:
        return _Asked()
    names = sorted({copy.part[0] for copy in digests.copies})
    topics = changelogs.describe(spark, options.brokers, options.client, names)
    return _Asked(plan.plan(digests.copies, topics, options.now_us), topics)


def _compared(
    spark: SparkSession, digests: Digests, asked: _Asked, chosen: Sequence[Pair], options: VerifyOptions
) -> tuple[list[Compared], int]:
    """Compare; returns what came of it, and for how many copies no changelog was read."""
    judged = asked.judged
    if not judged and not chosen:
        return [], 0
    known = kept.load(options.keep) if options.keep and judged else None
    questions = _questions(judged, asked.topics) if known else {}
    again = {copy: one for copy, one in questions.items() if known and one in known.questions}
    fresh = [one for one in judged if one.source.copy not in again]
    by_first: dict[int, list[Pair]] = defaultdict(list)
    for pair in chosen:
        by_first[pair.one.copy].append(pair)
    work = parts.Work({one.source.copy: one for one in judged}, by_first, keeps=known is not None)
    records = _records(spark, fresh, options) if fresh else None
    reused = kept.reused(spark, known, again) if known and again else None
    found = parts.compared(spark, digests, work, records, reused)
    if known:
        found = materialize(found)
        kept.save(spark, known, found, questions)
    rows = found.select(*Compared._fields).collect()
    return [Compared(*row) for row in rows], len(again)


def _questions(judged: Sequence[plan.Judged], topics: Mapping[str, changelogs.Topic]) -> dict[int, str]:
    """Name what is asked of changelogs, by copy; left out is what must be read each time."""
    named = ((one.source.copy, kept.question(one, topics[one.source.part[0]].id)) for one in judged)
    return {copy: one for copy, one in named if one is not None}


def _records(spark: SparkSession, judged: Sequence[plan.Judged], options: VerifyOptions) -> DataFrame:
    """Read the changelogs of copies."""
    assert options.brokers is not None
    settled, later = plan.ranges(judged)
    records = sum(until - first for ranges in (settled, later) for first, until in ranges.values())
    session.fit(spark, records * RECORD_BYTES, options.opening.conf)
    return parts.hashed(
        spark,
        judged,
        changelogs.read(spark, options.brokers, options.client, settled, committed=True),
        changelogs.read(spark, options.brokers, options.client, later, committed=False),
    )


def _write(spark: SparkSession, found: DataFrame, judged: Sequence[Verdict], output: Path) -> Sequence[Row]:
    """Write tables and JSON lines; returns the findings."""
    place = outputs.begin(output, outputs.VERIFY)
    order = ("severity", "detector", "namespace", "application_id", "task_id", "store", "pod")
    rows = rows_of(found.orderBy(*order).select(*FINDING.names))
    said = [one.row() for one in judged]
    for name, schema, lines in (("findings", FINDING, rows), ("verdicts", VERDICT, said)):
        values = [tuple(line[column] for column in schema.names) for line in lines]
        frame = spark.createDataFrame(values, schema).coalesce(1)
        frame.write.option("compression", "zstd").parquet(str(place / name))
        text = "".join(f"{json.dumps(line, ensure_ascii=True, separators=(',', ':'))}\n" for line in lines)
        (place / f"{name}.jsonl").write_text(text, encoding="ascii")
    marker = {
        "version": __version__,
        "verdicts": dict(sorted(Counter(one.word.value for one in judged).items())),
        "findings": dict(sorted(Counter(str(row["detector"]) for row in rows).items())),
    }
    (place / outputs.MARKER).write_text(json.dumps(marker, indent=2, sort_keys=True) + "\n", encoding="ascii")
    outputs.swap(output)
    return rows


def readable(outcome: Outcome) -> list[str]:
    """Print for people: a count of each word, then what is not equal, then findings."""
    words = Counter(one.word for one in outcome.verdicts)
    counts = ", ".join(f"{words[word]} {word.value}" for word in Word if words[word])
    lines = [f"{len(outcome.verdicts)} copies against their changelogs: {counts}"] if outcome.verdicts else []
    if outcome.again:
        lines.append(f"{outcome.again} of them as an earlier run read their changelogs")
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
