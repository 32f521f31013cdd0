"""What another version wrote is left as it is, by every command, with one sentence that says what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.contract.codec import Encoder
from agent.contract.events import SCHEMA_MAJOR, SCHEMA_MINOR, Kind, Origin, Record
from spark_rollup.bronze import snapshots, store
from spark_rollup.bronze.later import of_another_major
from spark_rollup.bronze.load import load
from spark_rollup.cli import main
from spark_rollup.config import MARKER
from spark_rollup.errors import UsageError
from spark_rollup.verify import digests
from tests.spark_rollup.support.digest_files import digest, write

NOW = Origin("uid-new", "boot-new", "pod-new")


def content(folder: Path) -> dict[str, bytes]:
    """Read every file."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=[store.FORMAT + 1, None], ids=["newer", "older"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Lay out bronze of another format; the first one had no number."""
    (tmp_path / "bronze" / "events" / "day=2026-11-20").mkdir(parents=True)
    marker = {"contract_major": 1, "judged_by": "9.8.7, contract 1.9"}
    marker |= {} if request.param is None else {"format": request.param}
    (tmp_path / "bronze" / MARKER).write_text(json.dumps(marker))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    return tmp_path / "bronze"


@pytest.mark.parametrize(
    "words",
    [
        "ingest --input IN --bronze BRONZE",
        "compact --bronze BRONZE",
        "forget --bronze BRONZE --pod pod-a",
        "audit --input BRONZE --output OUT",
        "safe-to-restart --input BRONZE",
        "why 0_0 --input BRONZE",
        "coverage --input BRONZE",
    ],
)
def test_bronze_of_another_format(other: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    """Every command refuses it before Spark is started."""
    before = content(other)
    written = json.loads((other / MARKER).read_text()).get("format", 1)
    places = {"IN": other.parent / "in", "BRONZE": other, "OUT": other.parent / "out"}
    assert main([str(places.get(word, word)) for word in words.split()]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert (
        f"{other} was written by another statewarden-rollup (9.8.7, contract 1.9; format {written}, this one knows "
        f"{store.FORMAT}): use that version on it, or name another --bronze and ingest the segments again"
        in said
    )
    assert content(other) == before


@pytest.mark.parametrize("marker", ["", "[]", "{", '{"format": "x"}', f'{{"format": {store.FORMAT}}}'])
def test_other_markers_are_no_other_format(tmp_path: Path, marker: str) -> None:
    """Torn, or of this format."""
    (tmp_path / MARKER).write_text(marker)
    store.check_format(tmp_path)


@pytest.mark.parametrize("known", [snapshots.FORMAT + 1, 2])
def test_snapshots_that_stand_for_removed_days(tmp_path: Path, known: int) -> None:
    """They cannot be made again, so the format is named; others of another format are no snapshots."""
    place = tmp_path / snapshots.NOTE
    place.write_text(json.dumps({"format": known, "days": ["2026-11-14"], "removed": ""}))
    assert snapshots.note(tmp_path) == snapshots.Note()
    if known == 2:
        (tmp_path / snapshots.OLD_BASE).write_text('{"day": "2026-11-14"}')
    else:
        place.write_text(json.dumps({"format": known, "days": [], "removed": "2026-11-14"}))
    with pytest.raises(UsageError, match=rf"format {known}, this one knows .*use that version"):
        snapshots.reading(tmp_path, 0)


@pytest.mark.spark
@pytest.mark.timeout(600)
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
    foreign = {**event, "data": {"kind": "lifecycle"}}
    lines = [json.dumps(each) for each in (later, another, foreign)]
    (tmp_path / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    found = load(spark, tmp_path)
    assert [row["line"] for row in found.events.collect()] == lines[:1]
    kept = found.quarantine.select("reason", "line").collect()
    assert sorted(map(tuple, kept)) == sorted(("unknown-major", line) for line in lines[1:])
    rows = [row.asDict() for row in found.quarantine.collect()]
    assert of_another_major(found.quarantine) == of_another_major(rows) == {"-/pod-new": 1}
    is_one = next(row for row in rows if row["line"] == lines[1])
    assert of_another_major([{**is_one, "line": "{}"}, {**is_one, "reason": "not-json"}]) == {"": 1}


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_digests_of_a_later_format_ask_for_an_upgrade(spark, tmp_path):
    """They are no broken lines."""
    write(tmp_path, [digest(pod="pod-0"), digest(pod="pod-1")])
    (file,) = tmp_path.iterdir()
    one, other = file.read_text().splitlines()
    one = one.replace('"format":1', '"format":2')
    other = other.replace(f'"{SCHEMA_MAJOR}.', f'"{SCHEMA_MAJOR + 1}.')
    file.write_text(f'{one}\n{other}\nno JSON\n{{"format": 2}}\n')
    with pytest.raises(
        UsageError, match=r"4 lines are something else, 2 of them of a later version: upgrade"
    ):
        digests.load(spark, tmp_path)
