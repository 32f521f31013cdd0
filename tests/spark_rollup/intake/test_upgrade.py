"""Bronze of an older release: migrated with every event, read, added to, audited over that release's own output."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from agent.contract.codec import Encoder
from agent.contract.events import SCHEMA_MAJOR, SCHEMA_MINOR, Kind, Origin, Record
from spark_rollup.bronze.load import load
from spark_rollup.bronze.store import FORMAT, read_events, read_quarantine
from spark_rollup.cli import main
from spark_rollup.config import MARKER
from spark_rollup.errors import UsageError
from spark_rollup.intake import ingest
from spark_rollup.verify import digests

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

KEPT = Path(__file__).parents[2] / "data" / "upgrade"
NOW = Origin("uid-new", "boot-new", "pod-new")


@pytest.fixture(params=sorted(path.name for path in KEPT.iterdir() if path.is_dir()))
def then(request, tmp_path) -> Path:
    """Unpack events, bronze and audit of one older commit."""
    for name in ("events", "bronze", "audit"):
        with tarfile.open(KEPT / request.param / f"{name}.tar.gz") as archive:
            archive.extractall(tmp_path / name, filter="data")
    return tmp_path


def ids_of(folder: Path) -> set[str]:
    """Read the ids of shipped events."""
    return {
        str(json.loads(line)["id"])
        for path in folder.rglob("*.jsonl.gz")
        for line in gzip.decompress(path.read_bytes()).splitlines()
    }


@pytest.mark.slow
def test_bronze_is_taken_over_whole(delta, then, capsys):
    """Each event once, the bad line still aside; a run over the same files adds nothing, a new event is added."""
    bronze, shipped = then / "bronze", ids_of(then / "events")
    assert main(["audit", "--input", str(bronze), "--output", str(then / "audit")]) == 2
    assert f"`statewarden-rollup migrate --bronze {bronze}`" in capsys.readouterr().err
    assert main(["migrate", "--bronze", str(bronze)]) == 0
    rows = read_events(delta, bronze).select("id", "line").collect()
    assert sorted(row["id"] for row in rows) == sorted(shipped)
    assert {str(json.loads(row["line"])["id"]) for row in rows} == shipped
    assert [row["reason"] for row in read_quarantine(delta, bronze).collect()] == ["not-json"]
    ((newest_us,),) = load(delta, then / "events").events.agg(F.max("observed_at_us")).collect()
    record = Record(Kind.LIFECYCLE, newest_us, {"phase": "started"})
    (then / "events" / "new.jsonl").write_text(f"{Encoder(NOW).encode(record, 1)}\n")
    (
        then / "events" / "bad.jsonl"
    ).unlink()  # from here it would be another line: the quarantine knows places
    added = ingest.run(delta, then / "events", bronze)
    assert (added.events, added.quarantined) == (1, 0)
    assert read_events(delta, bronze).count() == len(shipped) + 1
    assert json.loads((bronze / MARKER).read_text())["format"] == FORMAT
    before = {
        row["id"] for row in map(json.loads, (then / "audit" / "findings.jsonl").read_text().splitlines())
    }
    capsys.readouterr()
    assert main(["audit", "--input", str(bronze), "--output", str(then / "audit"), "--json"]) in (0, 1)
    after = {row["id"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert before & after.keys()
    assert all(row["incident_id"] for row in after.values())
    assert (then / "audit" / "restarts.json").is_file()


def test_what_a_later_contract_sends_is_kept_until_it_is_known(spark, tmp_path):
    """A known field in another kind is no error; another major version waits whole in the quarantine."""
    event = json.loads(
        Encoder(NOW).encode(Record(Kind.LIFECYCLE, 1_795_000_000_000_000, {"phase": "started"}), 1)
    )
    later = {
        **event,
        "data": {**event["data"], "schema_version": f"{SCHEMA_MAJOR}.{SCHEMA_MINOR + 1}", "tasks": 3},
    }
    another = {**event, "data": {**event["data"], "schema_version": f"{SCHEMA_MAJOR + 1}.0", "sequence": 2}}
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in (later, another)))
    found = load(spark, tmp_path)
    assert [row["line"] for row in found.events.collect()] == [json.dumps(later)]
    ((reason, line),) = found.quarantine.select("reason", "line").collect()
    assert (reason, line) == ("unknown-major", json.dumps(another))


def test_digests_of_a_later_format_ask_for_an_upgrade(spark, tmp_path):
    """They are no broken lines."""
    (tmp_path / "a.jsonl").write_text('{"format": 2, "store": "s"}\n{"format": "x"}\n')
    with pytest.raises(
        UsageError, match=r"2 lines are something else, 1 of them of a later version: upgrade"
    ):
        digests.load(spark, tmp_path)
