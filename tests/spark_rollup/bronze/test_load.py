"""Lines that cannot be used are kept with a reason; usable ones keep every field."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from agent.contract.codec import decode
from agent.contract.fields import FIELDS
from spark_rollup.bronze.dedupe import one_row_per_id
from spark_rollup.bronze.load import AHEAD_US, load
from spark_rollup.fleet.levels import last_words
from spark_rollup.fleet.reduce import Question
from spark_rollup.judging.plain import collected
from spark_rollup.schemas import EVENT
from tests.spark_rollup.conftest import LATER_US
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def good_line() -> str:
    fleet = Fleet("load")
    fleet.pod("pod-a").measures("0_0", 10, identity="x", puts=5, offset=7)
    return next(line for line in fleet.lines() if '"summary"' in line)


def changed(**data: object) -> str:
    envelope = json.loads(good_line())
    envelope["data"].update(data)
    return json.dumps(envelope)


def without(field: str) -> str:
    envelope = json.loads(good_line())
    del envelope["data"][field]
    return json.dumps(envelope)


BAD = {
    "{not json": "not-json",
    '["a list"]': "not-json",
    '{"id": "1"}': "not-an-event",
    changed(schema_version="2.1"): "unknown-major",
    without("schema_version"): "unknown-major",
    changed(kind="gossip"): "unknown-kind",
    without("pod_uid"): "missing-field",
    changed(kind="finding"): "missing-field",
    changed(sequence="many"): "wrong-type",
    changed(observed_at_us=2**63 - 1): "impossible-time",
    changed(observed_at_us=260_000_000_000_000_000): "impossible-time",  # year 10209
    changed(observed_at_us=-1): "impossible-time",
    changed(observed_at_us=LATER_US + AHEAD_US + 1): "impossible-time",
    changed(sequence=0): "impossible-number",
    changed(sequence=2**53 + 1): "impossible-number",
    changed(bytes=2**56 + 1): "impossible-number",
    changed(stores=[{"store": "s", "offset": -(2**63)}]): "impossible-number",
    changed(schema_version="1.x", kind="gossip"): "unknown-kind",
}

NEWER = changed(schema_version="1.99", kind="gossip", sequence=78, rumour="x" * 3000)
"""What a later minor version may send."""

LATE = changed(observed_at_us=LATER_US + AHEAD_US, sequence=2**53, stores=[{"store": "s", "offset": 2**56}])
"""As wild as is possible."""


@pytest.fixture(scope="module")
def loaded(spark, tmp_path_factory):
    """Load one directory with everything in it."""
    source = tmp_path_factory.mktemp("lines")
    (source / "deep" / "er").mkdir(parents=True)
    lines = [good_line(), good_line(), "", "   ", *BAD, NEWER, LATE, changed(brand_new_field=1, sequence=77)]
    (source / "deep" / "er" / "all.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (source / "notes.txt").write_text("not an input")
    whole = gzip.compress(f"{good_line()}\n".encode() * 400)
    (source / "boot-1-400.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (source / "boot-1-9.jsonl.gz").write_bytes(b"this is no gzip at all")
    return load(spark, source)


@pytest.fixture(scope="module")
def events(loaded):
    """Give the rows of its events."""
    return [row.asDict(recursive=True) for row in loaded.events.collect()]


@pytest.fixture(scope="module")
def quarantine(loaded):
    """Give the rows of its quarantine."""
    return loaded.quarantine.collect()


def test_each_bad_line_has_its_reason(quarantine):
    """Every kind of bad line is quarantined under its own reason, with the line."""
    rows = {row["line"]: row["reason"] for row in quarantine if row["line"]}
    assert rows == BAD


def test_cut_off_files_are_named(quarantine):
    """A segment that gave less than its name announces is in quarantine, also when it gave nothing."""
    rows = {row["file"].rsplit("/", 1)[-1] for row in quarantine if row["reason"] == "cut-off-file"}
    assert rows == {"boot-1-400.jsonl.gz", "boot-1-9.jsonl.gz"}


def test_good_lines_keep_every_field(events):
    """A loaded row equals what the codec reads from the same line; unknown fields stay in the raw text."""
    plain: dict[str, Any] = decode(good_line())
    row = next(row for row in events if row["sequence"] == plain["sequence"])
    assert {key: row[key] for key in plain if key != "stores"} == {
        key: plain[key] for key in plain if key != "stores"
    }
    assert row["stores"][0] | {"held": True} == {**dict.fromkeys(row["stores"][0]), **plain["stores"][0]}
    assert any("brand_new_field" in row["line"] for row in events)


def test_a_newer_minor_version_is_carried(events):
    """The row of a kind that is not known counts in its agent's sequence; its line is kept whole."""
    (row,) = [row for row in events if row["kind"] == "gossip"]
    assert (row["sequence"], row["line"]) == (78, NEWER)


def test_words_of_a_newer_version_have_a_default(spark, tmp_path):
    """A severity, confidence, status or level that is not known is loud, unsure, open and harmless to every rule."""
    fleet = Fleet("words")
    fleet.pod("pod-a", ends_s=50).finds("dirty-close", "0_0", 5)
    lines = "\n".join(fleet.lines()).replace('"critical"', '"error"').replace('"confirmed"', '"guessed"')
    lines = (
        lines.replace('"open"', '"acknowledged"').replace('"damage"', '"omen"').replace('"yes"', '"perhaps"')
    )
    (tmp_path / "a.jsonl").write_text(lines.replace('"schema_version":"1.0"', '"schema_version":"1.99"'))
    (row,) = last_words(collected(load(spark, tmp_path)).events)
    said = (row.severity, row.confidence, row.status, row.level, row.affected)
    assert said == ("warning", "unknown", "open", "event", "possibly")


def test_kinds_that_are_not_known_leave_no_holes(spark, tmp_path):
    """Every fifth event is of a kind of a later minor version: nothing is lost."""
    fleet = Fleet("holes")
    fleet.pod("pod-a")
    lines = [json.loads(line) for line in fleet.lines()]
    for line in lines[4::5]:
        line["data"] |= {"kind": "gossip", "schema_version": "1.99"}
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = load(spark, tmp_path)
    assert found.quarantine.count() == 0
    (story,) = collected(found).stories(Question(at_us(HORIZON_S)))
    assert story.pod.gaps == []


def test_repeats_are_dropped_once(loaded, events):
    """Two copies of an event leave one row."""
    ids = [row["id"] for row in one_row_per_id(loaded.events).select("id").collect()]
    assert len(ids) == len(set(ids))
    assert len(ids) < len(events)


def test_no_python_runs_on_executors(loaded):
    """Neither frame has a row that went through Python."""
    for frame in (loaded.events, loaded.quarantine):
        plan = frame._jdf.queryExecution().toString()
        assert "Scan text" in plan or "FileScan" in plan
        assert not {"Python", "ExistingRDD", "LogicalRDD"} & set(
            plan.replace("(", " ").replace("[", " ").split()
        )


def test_the_type_is_the_field_table():
    """The Spark type has exactly the fields of the contract, in its order."""
    assert EVENT.names == [row.name for row in FIELDS]


def test_a_thinned_segment_holds_what_its_name_says(spark, tmp_path):
    """The agent made room and dropped records: `-k<n>` counts what is left; fewer than that are a cut-off file."""
    fleet = Fleet("thinned")
    fleet.pod("pod-a", ends_s=200).drops(119, 3, 4)
    lines = fleet.lines()
    last = len(lines) + 2
    for boot, kept in (("whole", lines), ("torn", lines[:-1])):
        text = "".join(f"{line}\n" for line in kept)
        name = f"{boot}-{1:012d}-{last:012d}-k{len(lines)}.jsonl.gz"
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    found = load(spark, tmp_path)
    assert found.events.select("id").distinct().count() == len(lines)
    (cut,) = found.quarantine.collect()
    assert (cut["reason"], cut["file"].rsplit("/", 1)[1].split("-")[0]) == ("cut-off-file", "torn")
    assert f"announces {len(lines)} records, the file gave {len(lines) - 1}" in cut["detail"]
