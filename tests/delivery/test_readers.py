"""Readers that nobody here wrote: DuckDB on segment files, the CloudEvents SDK on every event, in each form."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from agent.cli import main
from agent.contract.codec import decode, rfc3339
from agent.contract.events import Kind
from agent.ship.sinks.kafka import messages

pytestmark = pytest.mark.delivery
TRACES = ("alos-", "dirty-close-kill-", "torn-walk", "kafka-20685-4.1.2")


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """Give what agents would have shipped of recorded runs, and one event of every kind beside it."""
    folder = tmp_path_factory.mktemp("segments")
    for directory in sorted((repository / "tests/data/traces").iterdir()):
        if not directory.name.startswith(TRACES):
            continue
        for trace in sorted(directory.glob("trace-*.jsonl.gz")):
            main(["replay", str(trace), "--pod", f"{directory.name}-{trace.stem}", "--events", str(folder)])
    golden = (repository / "tests/contract/golden/v1.3.jsonl").read_bytes()
    (folder / "golden.jsonl.gz").write_bytes(gzip.compress(golden))
    return folder


@pytest.fixture(scope="module")
def lines(segments: Path) -> list[bytes]:
    return [
        x
        for path in sorted(segments.rglob("*.jsonl.gz"))
        for x in gzip.decompress(path.read_bytes()).splitlines()
    ]


def test_duckdb_reads_the_segments(segments: Path, lines: list[bytes]) -> None:
    """Without a schema of ours: number of events, kinds, times and nested findings are what was written."""
    duckdb = pytest.importorskip("duckdb", reason="run: make test-services")
    table = (
        f"read_json('{segments}/**/*.jsonl.gz', format = 'newline_delimited', maximum_object_size = 16777216)"
    )
    with duckdb.connect() as database:
        kinds = dict(database.execute(f"select data.kind, count(*) from {table} group by 1").fetchall())
        ids = database.execute(
            f"select count(*), count(distinct id), min(specversion) from {table}"
        ).fetchone()
        found = database.execute(
            f"select data.finding_id, len(data.evidence) from {table} where data.kind = 'finding'"
        ).fetchall()
    events = [decode(line) for line in lines]
    assert kinds == Counter(event["kind"] for event in events)
    assert ids == (len(lines), len({event["id"] for event in events}), "1.0")
    assert len(found) >= 5
    written = {(x["finding_id"], len(list(x["evidence"]))) for x in events if x["kind"] == "finding"}  # type: ignore[call-overload]
    assert {(row[0], row[1]) for row in found} == written


def test_the_cloudevents_sdk_finds_every_event_valid(lines: list[bytes]) -> None:
    """Each line is a valid CloudEvent 1.0 with the attributes and the data that the codec reads."""
    pytest.importorskip("cloudevents", reason="run: make test-services")
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    seen: Counter[str] = Counter()
    for line in lines:
        event, ours = JSONFormat().read(CloudEvent, line), decode(line)
        data = event.get_data()
        assert {"id": event.get_id(), **data} == ours
        assert event.get_type() == f"io.statewarden.{ours['kind']}.v1"
        assert event.get_datacontenttype() == "application/json"
        time = event.get_time()
        assert time is not None
        at_us = ours["observed_at_us"]
        assert isinstance(at_us, int)
        assert rfc3339(at_us) == time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        seen[str(ours["kind"])] += 1
    assert set(seen) == {kind.value for kind in Kind}
    assert len(lines) > 400


@pytest.mark.parametrize("binary", [False, True], ids=["structured", "binary"])
def test_the_sdk_reads_our_kafka_messages(lines: list[bytes], binary: bool) -> None:
    """Headers and values of each message are what the CloudEvents Kafka binding expects, in both modes."""
    pytest.importorskip("cloudevents", reason="run: make test-services")
    from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka
    from cloudevents.core.formats.json import JSONFormat

    for line, (key, value, headers) in zip(lines, messages(b"\n".join(lines), binary=binary), strict=True):
        event = from_kafka(KafkaMessage(dict(headers), key, value), JSONFormat())
        assert {"id": event.get_id(), **event.get_data()} == decode(line)
        assert event.get_subject() == json.loads(line).get("subject")
        assert key
