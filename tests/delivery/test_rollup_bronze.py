"""Bronze in real S3 services: one writer at a time, the same findings as from a directory, read by foreign readers."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.delivery.rollups import EACH_S3, Rollup, rows
from tests.delivery.servers import BUCKET, KEY, S3, SECRET

pytestmark = [pytest.mark.delivery, pytest.mark.timeout(900)]

LEFT = b"compact, process 1 on elsewhere\n"


def foreign(s3: S3) -> dict[str, str]:
    """Give delta-rs's settings for a store."""
    return {
        "AWS_ENDPOINT_URL": s3.endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }


@pytest.mark.parametrize("s3", EACH_S3, indirect=True)
def test_bronze_in_s3_gives_the_same_findings(
    rollup: Rollup, s3: S3, segments: Path, expected: tuple[Path, bytes], tmp_path: Path
) -> None:
    """Taken in once, however often; joined and cleaned; read by DuckDB; a claim that was left behind is taken over."""
    import obstore

    prefix = f"bronze-{uuid.uuid4().hex[:8]}"
    bronze, where = f"s3a://{BUCKET}/{prefix}", ("--endpoint", s3.endpoint)
    store = s3.store()
    obstore.put(store, f"{prefix}/_claim", LEFT)
    asked = ("ingest", "--input", segments, "--bronze", bronze, *where)
    refused = rollup.run(*asked, claim={"PATIENCE_S": 0})
    assert refused.code == 2
    assert f"another run is working on {bronze} (compact, process 1 on elsewhere)" in refused.err
    told = rollup.run(*asked, claim={"STALE_S": 0, "RENEW_S": 0.2})
    assert told.code == 0, told.err
    assert "waiting for another run" in told.err
    assert rollup.run(*asked, "--again").out.startswith("0 new events, 0 new quarantined")
    done = rollup.run("compact", "--bronze", bronze, *where)
    assert done.code == 0, done.err
    names = [meta["path"] for meta in obstore.list(store, prefix).collect()]
    assert f"{prefix}/_claim" not in names
    fields = "select count(*), count(distinct id), sum(len(evidence)) from events"
    there = rows(f"s3://{BUCKET}/{prefix}", fields, **foreign(s3))
    assert there == rows(expected[0], fields)
    output = tmp_path / "out"
    audited = rollup.run("audit", "--input", bronze, "--output", output, *where)
    assert audited.code in (0, 1), audited.err
    assert (output / "findings.jsonl").read_bytes() == expected[1]


def test_a_store_without_bronze_is_one_line(rollup: Rollup, s3: S3) -> None:
    """Neither an audit nor upkeep makes anything up."""
    where = f"s3a://{BUCKET}/nothing-here"
    for command in (("coverage", "--input"), ("compact", "--bronze")):
        told = rollup.run(*command, where, "--endpoint", s3.endpoint)
        assert (told.code, told.out, told.err.count("\n")) == (2, "", 1), told
        assert "is not a bronze directory: `ingest` makes one" in told.err
