"""The command as a whole: digests, a changelog without brokers, and what agents suspect."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("xxhash", reason="the extra `verify` is not installed")

from agent.contract.buckets import StoreKind, body_of
from agent.contract.codec import SCHEMA_VERSION
from agent.contract.events import Kind, Severity
from spark_rollup.bronze import load
from spark_rollup.errors import UnreadError
from spark_rollup.fleet.reduce import Question
from spark_rollup.intake import ingest
from spark_rollup.intake.opening import Opening
from spark_rollup.judging import verified
from spark_rollup.judging.plain import Plain, collected
from spark_rollup.sources import changelogs
from spark_rollup.sources.brokers import Part
from spark_rollup.sources.changelogs import Ends, Topic
from spark_rollup.spark import needs
from spark_rollup.verify import digests, run
from spark_rollup.verify.verdicts import Word
from tests.spark_rollup.support.digest_files import (
    NOW_US,
    Logged,
    Told,
    database,
    digest,
    folded,
    frame,
    write,
)
from tests.spark_rollup.support.fleet import START_US, Fleet, at_us

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

LOG = [Logged(n, b"%d" % (n % 20), b"%d" % n if n % 7 else None) for n in range(100)]
TOPIC = "orders-counts-changelog"
HOURS = {"retention.ms": -1, "delete.retention.ms": 86_400_000, "min.compaction.lag.ms": 0}


class Logs:
    """Changelogs in memory in place of brokers."""

    def __init__(self, spark: SparkSession, records: Mapping[str, Sequence[Logged]]) -> None:
        self.records = dict(records)
        self._spark = spark

    def describe(
        self, _spark: SparkSession, _brokers: str, _client: object, names: list[str]
    ) -> dict[str, Topic]:
        return {
            name: Topic({0: Ends(0, records[-1].offset + 1, records[-1].offset + 1)}, HOURS)
            for name, records in self.records.items()
            if name in names
        }

    def frame(
        self,
        _spark: SparkSession,
        _brokers: str,
        _client: object,
        ranges: Mapping[Part, tuple[int, int]],
        *,
        committed: bool,
    ) -> DataFrame:
        return frame(
            self._spark,
            {
                topic: [one for one in self.records[topic] if first <= one.offset < until]
                for (topic, _), (first, until) in ranges.items()
            },
        )


@pytest.fixture
def logs(spark, monkeypatch):
    """Put a changelog in place of brokers."""
    found = Logs(spark, {TOPIC: LOG})
    monkeypatch.setattr(changelogs, "describe", found.describe)
    monkeypatch.setattr(changelogs, "read", found.frame)
    monkeypatch.setattr(needs, "bring", lambda *_: [])
    monkeypatch.setattr(needs, "check", lambda *_: None)
    return found


def compare(tmp_path: Path, told: Sequence[Told], events: str | None = None) -> run.Outcome:
    """Run the command on digests."""
    opening = Opening(str(write(tmp_path / "digests", told)))
    return run.run(run.VerifyOptions(opening, tmp_path / "out", NOW_US, "b:9092", events=events))


def held(entries: Mapping[bytes, bytes], pod: str, identity: str | None = None) -> Told:
    """Digest a store at the end of the changelog, not written for a while."""
    unwritten = replace(database(entries, 99), identity=identity, written_us=at_us(40))
    return digest(unwritten, pod=pod, offset=99)


@pytest.mark.slow
def test_agents_suspicions_are_proved_and_refuted(spark, tmp_path, logs, capsys):
    """What differs proves its agent's suspicion, what is equal refutes it; what is no suspicion is left alone."""
    fleet = Fleet("shop")
    for name in ("pod-good", "pod-bad"):
        pod = fleet.pod(name)
        pod.finds("store-shrank", "0_0", 50, store="counts", identity="life-1", confidence="suspected")
        pod.finds("stale-eos-checkpoint", "0_0", 51, store="counts", level="exposure", confidence="suspected")
        pod.finds("lost-segment", "0_0", 52, store="counts", confidence="confirmed")
        pod.finds("unrestored-store", "0_0", 53, store="counts", confidence="suspected", status="resolved")
        pod.finds("skipped-eos-wipe", "0_0", 54, identity="life-1", confidence="suspected")
        pod.measures("0_0", 60, store="counts", identity="life-1")
    events = tmp_path / "events"
    events.mkdir()
    whole = folded(LOG, 99)
    told = [held(whole, "pod-good", "life-1"), held(dict(list(whole.items())[1:]), "pod-bad", "life-1")]
    source = fleet.write(events)
    (source / "later.jsonl").write_text(fleet.lines()[0].replace(f'"{SCHEMA_VERSION}"', '"1.99"'))
    outcome = compare(tmp_path, told, events=str(source))
    assert "some events are of contract 1.99" in capsys.readouterr().err
    assert {one.source.pod: one.word for one in outcome.verdicts} == {
        "pod-good": Word.EQUAL, "pod-bad": Word.DIFFERS,
    }  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "out/findings.jsonl").read_text().splitlines()]
    assert {(row["detector"], row["pod"], row["store"]): (row["confirms"], row["refutes"]) for row in rows} == {
        ("state-differs", "pod-bad", "counts"): (["store-shrank-pod-bad-0_0", "skipped-eos-wipe-pod-bad-0_0"], []),
        ("state-equal", "pod-good", "counts"): ([], ["store-shrank-pod-good-0_0"]),
        ("state-equal", "pod-good", None): ([], ["skipped-eos-wipe-pod-good-0_0"]),
    }  # fmt: skip
    assert at_us(60) < NOW_US
    assert outcome.worst_rank() == Severity.CRITICAL.rank
    assert replace(outcome, findings=outcome.findings[1:]).worst_rank() == -1  # what is refuted is over
    assert "4 suspicions of agents: 2 proved, 2 refuted" in run.readable(outcome)

    # meanwhile one agent found what proves its own suspicion
    read = collected(load.load(spark, source))
    is_sure = "skipped-eos-wipe-pod-good-0_0"
    events = [x._replace(confidence="confirmed") if x.finding_id == is_sure else x for x in read.events]
    proofs = verified.verified(spark, tmp_path / "out", NOW_US)
    found = Plain(events).told(Question(NOW_US, proofs=proofs)).of("findings")
    left = [row for row in found if row["reported_by"] == "agent"]
    assert {(row["detector"], row["pod"]) for row in left} == {
        ("skipped-eos-wipe", "pod-good"), ("lost-segment", "pod-good"), ("lost-segment", "pod-bad"),
        ("stale-eos-checkpoint", "pod-good"), ("stale-eos-checkpoint", "pod-bad"),
    }  # fmt: skip
    shown = [row for row in found if row["reported_by"] != "agent"]
    assert {row["detector"] for row in shown} == {"state-differs", "state-equal"}
    assert is_sure not in {one for row in shown for one in row["refutes"]}
    assert verified.verified(spark, tmp_path / "out", at_us(60)) == {}


@pytest.mark.usefixtures("delta")
def test_digests_that_agents_shipped_are_those_that_the_command_writes(spark, tmp_path):
    """The newest of each copy, its buckets unpacked, also of segments and of stores without any."""
    whole = folded(LOG, 99)
    told = [
        replace(held(whole, "pod-0", "life-1"), made_us=at_us(60)),
        replace(held({}, "pod-1"), made_us=at_us(60), cluster="eu-1"),
        digest(
            database(whole, 5, segment_ms=60_000),
            database({b"": b""}, None, segment_ms=120_000, is_exact=False),
            kind=StoreKind.WINDOW, store="windows", made_us=at_us(60),
        ),
        digest(kind=StoreKind.WINDOW, store="empty", made_us=at_us(60)),
    ]  # fmt: skip
    older = replace(told[0], made_us=at_us(50), databases=(database({b"old": b"1"}, 5),))
    fleets = {cluster: Fleet("shop", cluster=cluster) for cluster in ("", "eu-1")}
    pods = {
        (cluster, name): fleets[cluster].pod(name) for cluster, name in [("", "pod-0"), ("eu-1", "pod-1")]
    }
    for one in (older, *told, told[0]):
        pods[one.cluster or "", one.pod].tells(Kind.DIGEST, (one.made_us - START_US) / 1e6, **body_of(one))
    for number, fleet in enumerate(fleets.values()):
        fleet.write(tmp_path / "events" / str(number))
    ingest.run(spark, tmp_path / "events", tmp_path / "bronze")
    shipped, written = (
        digests.load(spark, place) for place in (tmp_path / "bronze", write(tmp_path / "written", told))
    )
    assert shipped.copies == written.copies
    rows = [
        sorted(
            (row.copy, *found) for row in one.stored.collect() for found in digests.buckets_of(row.databases)
        )
        for one in (shipped, written)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) > len(whole) / 2


def test_a_digest_that_cannot_be_read_to_its_end_is_named(spark, tmp_path):
    """Nothing is compared without it: it may be the copy that differs."""
    whole = gzip.compress(b"{}" * 100)
    for name, content in (("whole", whole), ("torn", whole[:-9]), ("empty", b"")):
        (tmp_path / f"{name}.jsonl.gz").write_bytes(content)
    with pytest.raises(UnreadError) as refused:
        digests.load(spark, tmp_path)
    said = str(refused.value)
    assert "empty.jsonl.gz: it is empty; " in said
    assert "torn.jsonl.gz: its gzip data break off" in said
    assert "whole" not in said
