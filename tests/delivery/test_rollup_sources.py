"""Recorded events through the agents' own sinks into real S3 services and a real broker, and from there into bronze.

What an audit finds is a function of these rows, so the rows are compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.demo.agents import free_port
from tests.delivery.rollups import EACH_S3, Rollup, Told, rows, ship
from tests.delivery.servers import BUCKET, S3, Broker

pytestmark = [pytest.mark.delivery, pytest.mark.timeout(900)]


def halves(segments: Path) -> tuple[list[Path], list[Path]]:
    """Split the segments into two windows."""
    paths = sorted(segments.rglob("*.jsonl.gz"))
    assert len(paths) > 1
    return paths[::2], paths[1::2]


def same_rows(left: Path, right: Path, columns: str = "*") -> bool:
    """Compare two bronze directories."""
    first, second = (
        sorted(map(str, rows(bronze, f"select {columns} from events"))) for bronze in (left, right)
    )
    return first == second and len(first) > 100


@pytest.mark.parametrize("s3", EACH_S3, indirect=True)
def test_s3_gives_the_same_rows(
    rollup: Rollup, s3: S3, segments: Path, expected: tuple[Path, bytes], tmp_path: Path
) -> None:
    """Two windows, each taken once, one by a stream; a repeat takes nothing."""
    first, second = halves(segments)
    bronze, source = tmp_path / "bronze", f"s3a://{BUCKET}/rollup"
    ship(first, segments, f"s3://{BUCKET}/rollup", **s3.ship)
    where = ("--endpoint", s3.endpoint)
    assert f"from {len(first)} new files" in rollup.ingest(source, bronze, *where)
    ship(second, segments, f"s3://{BUCKET}/rollup", **s3.ship)
    told = rollup.ingest(source, bronze, *where, "--trigger", "availableNow")
    assert f"from {len(second)} new files" in told
    assert rollup.ingest(source, bronze, *where).startswith("0 new events, 0 new quarantined lines from 0 ")
    assert same_rows(bronze, expected[0])


def test_kafka_gives_the_same_rows(
    rollup: Rollup, broker: Broker, segments: Path, expected: tuple[Path, bytes], tmp_path: Path
) -> None:
    """Two windows of a topic, messages repeated in the second; offsets are remembered, ids drop the repeats."""
    first, second = halves(segments)
    source = f"kafka://{broker.address}/{broker.make_topic()}"
    bronze = tmp_path / "bronze"
    ship(first, segments, source)
    rollup.ingest(source, bronze)
    ship([*second, first[0]], segments, source)
    rollup.ingest(source, bronze)
    assert rollup.ingest(source, bronze).startswith("0 new events, 0 new quarantined lines from 0 partitions")
    assert same_rows(bronze, expected[0])


def test_binary_messages_give_the_same_rows(
    rollup: Rollup, broker: Broker, segments: Path, expected: tuple[Path, bytes], tmp_path: Path
) -> None:
    """In binary mode the envelope is in the headers: the rows and the raw lines' attributes are the same."""
    source = f"kafka://{broker.address}/{broker.make_topic()}"
    ship(sorted(segments.rglob("*.jsonl.gz")), segments, source, content_mode="binary")
    rollup.ingest(source, tmp_path / "bronze")
    fields = "* exclude (line), json(line)->>'subject', json(line)->>'type', json(line)->'data'"
    assert same_rows(tmp_path / "bronze", expected[0], fields)


def test_trouble_with_a_store_is_one_line(rollup: Rollup, s3: S3, tmp_path: Path) -> None:
    """An empty prefix, and nobody listening: exit code 3 and one line that says so."""
    for prefix, endpoint, message in (
        ("nothing-here", s3.endpoint, "does not exist, or holds nothing"),
        ("rollup", f"http://127.0.0.1:{free_port()}", "is --endpoint right"),
    ):
        where = ("--input", f"s3a://{BUCKET}/{prefix}", "--endpoint", endpoint)
        refused(rollup.run("ingest", *where, "--bronze", tmp_path / "bronze"), message)
    assert not (tmp_path / "bronze" / "_bronze.json").exists()


@pytest.mark.parametrize("s3", ["versitygw"], indirect=True)  # moto takes any credentials
def test_wrong_credentials_are_one_line(rollup: Rollup, s3: S3, tmp_path: Path) -> None:
    """A wrong secret is told as such, and where credentials come from."""
    where = ("--input", f"s3a://{BUCKET}/rollup", "--endpoint", s3.endpoint)
    told = rollup.run("ingest", *where, "--bronze", tmp_path / "bronze", fs__s3a__secret__key="wrong")
    refused(told, "refuses these credentials")


def test_trouble_with_a_broker_is_one_line(rollup: Rollup, broker: Broker, tmp_path: Path) -> None:
    """A topic that is not there, and nobody listening: exit code 3 and one line that says so."""
    client = tmp_path / "client.properties"
    client.write_text(
        "# as Kafka's own tools take it\ndefault.api.timeout.ms = 2000\nrequest.timeout.ms=2000\n"
    )
    asked = ("ingest", "--bronze", tmp_path / "bronze", "--input")
    refused(rollup.run(*asked, f"kafka://{broker.address}/absent"), "have no topic absent")
    nobody = (f"kafka://127.0.0.1:{free_port()}/x", "--kafka-config", client)
    refused(rollup.run(*asked, *nobody), "no broker answered within 2 s")


def refused(told: Told, message: str) -> None:
    """Check exit code and the one line of a command that could not do its work."""
    assert (told.code, told.out, told.err.count("\n")) == (3, "", 1), told
    assert message in told.err
