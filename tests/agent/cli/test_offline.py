"""`scan` and `replay`: what they read, what they refuse and how they say it."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.cli.offline import SEGMENT_RECORDS, events_directory, parse_duration_us
from agent.contract.codec import decode
from agent.contract.events import Kind, Origin, Record
from agent.errors import UsageError
from tests.agent.cli.commands import PLAIN, plant

CRASH = "kafka-20685-4.1.2"
CRASH_APPLICATION = "kafka-20685-4-1-2-014328"

DROPPED = """
import contextlib, io, os, sys
from agent.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(["scan", "readable"])  # whatever Python loads late is loaded while it still may
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(main(sys.argv[1:]))
"""
"""A process of another user and group than the one that made the directories."""


def scan_as_stranger(
    place: Path, repository: Path, options: Sequence[str] = PLAIN
) -> subprocess.CompletedProcess[str]:
    """Scan `state` in this place as a user who is neither the owner nor in the group."""
    place.chmod(0o755)
    plant(place / "readable")
    return subprocess.run(
        [sys.executable, "-c", DROPPED, "scan", "state", *options],
        cwd=place, env={"PYTHONPATH": str(repository), "PATH": os.environ["PATH"]},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def close_to_strangers(directory: Path) -> None:
    """Give a directory Kafka Streams' mode 0750; a test that is not root is its own stranger."""
    directory.chmod(0o750 if os.geteuid() == 0 else 0o000)


@pytest.fixture
def reopened(tmp_path: Path):
    """Make everything removable again after a test that is not root."""
    yield
    for directory, names, _ in os.walk(tmp_path):
        for name in names:
            Path(directory, name).chmod(0o755)


# -- scan ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "asked", "words"),
    [
        ("", "nowhere", "nowhere: no such directory; give Kafka Streams' state.dir\n"),
        ("file", "file", "file: not a directory"),
        ("", "",
         ": no directory of an application is here; give Kafka Streams' state.dir (`statewarden scan --may-be-empty`"),
        ("logs/today/", "", ": not a Kafka Streams state directory: none of its 1 sub-directories has"),
        ("x/0-0/", "", "directories (such as 0_0), a .lock or kafka-streams-process-metadata\n"),
        ("state", "", "; possible state directories below it: {place}/state\n"),
        ("state", "state/app",
         "this is an application directory; give its parent, Kafka Streams' state.dir: {place}/state"),
    ],
)  # fmt: skip
def test_scan_of_what_is_no_state_directory(
    statewarden: Callable, tmp_path: Path, made: str, asked: str, words: str
) -> None:
    """It is called what it is, with what to give instead."""
    if made == "state":
        plant(tmp_path / made)
    elif made.endswith("/"):
        (tmp_path / made).mkdir(parents=True)
    elif made:
        (tmp_path / made).touch()
    said = statewarden("scan", tmp_path / asked)
    assert said.code == 2
    assert said.complaint.startswith(f"statewarden: {tmp_path / asked}: ")
    assert words.format(place=tmp_path) in said.complaint


@pytest.mark.usefixtures("reopened")
@pytest.mark.parametrize("closed", ["state", "state/app"])
def test_scan_of_an_unreadable_directory(repository: Path, tmp_path: Path, closed: str) -> None:
    """Mode 0750 of another group is 3, and the message says whose group is needed."""
    plant(tmp_path / "state")
    close_to_strangers(tmp_path / closed)
    done = scan_as_stranger(tmp_path, repository)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"statewarden: {closed}: permission denied; ")
    assert "with the application's group" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "garbage", [b"", b"\x00\xff\xfe", b"0\n9\nx 0 1\n", b"9" * 5000, b"0\n1\nno such line\n"]
)
def test_a_garbage_checkpoint_ends_no_scan(statewarden: Callable, tmp_path: Path, garbage: bytes) -> None:
    """A checkpoint that cannot be read is a finding, and hides nothing else: the task beside it is judged."""
    plant(tmp_path / "state", task="0_1", checkpoint=garbage)
    plant(tmp_path / "state", task="0_2")
    said = statewarden("scan", tmp_path / "state", *PLAIN, "--json")
    assert (said.code, said.err) == (1, "")
    damage = [row["task_id"] for row in said.findings if row["detector"] == "resurrected-checkpoint"]
    assert damage == ["0_2"]
    assert "0_1" in [row["task_id"] for row in said.findings if "checkpoint" in row["summary"]]


def test_scan_reads_applications_side_by_side(statewarden: Callable, tmp_path: Path) -> None:
    """Settings of one application say nothing of the other below the same directory."""
    plant(tmp_path / "state", application="one")
    plant(tmp_path / "state", application="two")
    facts = ("processing_guarantee=exactly_once", "kafka_streams_version=2.1.1", "upgrade_from=2.1.1")
    exactly = [word for fact in facts for word in ("--set", f"two:{fact}")]
    said = statewarden("scan", tmp_path / "state", "--json", *exactly, *PLAIN)
    found = {row["application_id"]: row["severity"] for row in said.findings if row["task_id"] == "0_0"}
    assert found == {"one": "critical", "two": "warning"}


def test_hostile_names_are_escaped(statewarden: Callable, tmp_path: Path) -> None:
    """Control characters in names on disk reach neither the terminal nor a JSON reader as such."""
    plant(tmp_path / "state", application="a\x1b[31m", store="s\x07\u202e")
    plain = statewarden("scan", tmp_path / "state", *PLAIN)
    assert plain.code == 1
    assert "a\\x1b[31m/0_0/s\\x07\\u202e" in plain.out
    assert all(char.isprintable() or char == "\n" for char in plain.out)
    rows = statewarden("scan", tmp_path / "state", *PLAIN, "--json")
    assert rows.out.isascii()
    assert rows.findings[0]["store"] == "s\x07\u202e"


# -- replay -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "20", "m20", "-1m", "1d", "1.5h", "20 m", "٢m"])
def test_a_quiet_period_needs_its_unit(statewarden: Callable, traces: Path, text: str) -> None:
    """A time without unit is refused, with examples."""
    trace = traces / CRASH / "trace-pod-a.jsonl.gz"
    said = statewarden("replay", trace, f"--quiet-period={text}")
    assert said.code == 2
    assert said.complaint == f"statewarden: {text!r} is not a time; write for example 90s, 20m or 1h\n"


def test_durations() -> None:
    """Seconds, minutes and hours become microseconds."""
    read = [parse_duration_us(x) / 1_000_000 for x in ("0s", "90s", "20m", "1h")]
    assert read == [0, 90, 1_200, 3_600]
    with pytest.raises(UsageError):
        parse_duration_us("1h30m")


def test_json_rows_have_the_agreed_keys(statewarden: Callable, traces: Path, settings_of: Callable) -> None:
    """One JSON line per finding, each once, its evidence in order; the schema has the keys (`test_output`)."""
    said = statewarden(
        "replay", traces / CRASH / "trace-pod-a.jsonl.gz", "--json", "--pod", "pod-a", *settings_of(CRASH)
    )
    assert (said.code, said.err) == (1, "")
    assert {row["detector"] for row in said.findings} >= {"skipped-eos-wipe", "stale-eos-checkpoint"}
    assert len({row["id"] for row in said.findings}) == len(said.findings)
    assert [row["upstream"] for row in said.findings if "eos" in row["detector"]] == [["KAFKA-20685"]] * 2
    for row in said.findings:
        assert (row["pod"], row["application_id"]) == ("pod-a", CRASH_APPLICATION)
        assert all(set(step) == {"at", "what", "where"} for step in row["evidence"])
        assert [step["at"] for step in row["evidence"]] == sorted(step["at"] for step in row["evidence"])


def shipped(directory: Path) -> list[dict[str, Any]]:
    """Decode every shipped line, segments in order of their names."""
    rows = []
    for path in sorted(directory.rglob("*.jsonl.gz")):
        rows += [decode(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return rows


def test_events_are_what_the_agent_ships(
    statewarden: Callable, traces: Path, settings_of: Callable, tmp_path: Path
) -> None:
    """Every line decodes, sequences run from 1 without holes, and the frame is start to stop."""
    trace = traces / CRASH / "trace-pod-a.jsonl.gz"
    said = statewarden("replay", trace, "--pod", "pod-a", "--events", tmp_path, "--json", *settings_of(CRASH))
    rows = shipped(tmp_path)
    assert [row["sequence"] for row in rows] == list(range(1, len(rows) + 1))
    assert len({row["id"] for row in rows}) == len(rows)
    assert {(row["pod"], row["boot_id"]) for row in rows} == {("pod-a", rows[0]["boot_id"])}
    assert [row.get("phase") for row in (rows[0], rows[-1])] == ["started", "stopping"]
    assert {row["kind"] for row in rows} == {
        "transition", "finding", "summary", "heartbeat", "configuration", "lifecycle",
    }  # fmt: skip
    final = {row["id"]: row for row in said.findings}
    told = {row["finding_id"]: row for row in rows if row["kind"] == "finding"}
    assert set(told) == set(final)
    for finding_id, row in told.items():
        for key in ("status", "severity", "confidence", "summary", "evidence"):
            assert row[key] == final[finding_id][key]


def test_long_runs_are_split_into_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is named by its first and last sequence, below one folder; no record or no directory, no file."""
    monkeypatch.chdir(tmp_path)
    for directory in (None, tmp_path / "events"):
        with events_directory(directory, Origin("uid/../x", "boot", "pod-a")):
            pass
    assert list(tmp_path.rglob("*.*")) == []
    count = SEGMENT_RECORDS * 2 + 3
    with events_directory(tmp_path / "events", Origin("uid/../x", "boot", "pod-a")) as events:
        for number in range(count):
            events(Record(Kind.LIFECYCLE, number, {"phase": "started", "reason": "test"}))
    (folder,) = tmp_path.glob("events/*")
    ends = [(n + 1, min(n + SEGMENT_RECORDS, count)) for n in range(0, count, SEGMENT_RECORDS)]
    assert sorted(x.name for x in folder.iterdir()) == [f"boot-{a:012d}-{b:012d}.jsonl.gz" for a, b in ends]
    assert [row["sequence"] for row in shipped(tmp_path)] == list(range(1, count + 1))


def test_a_replay_repeats_byte_for_byte(
    statewarden: Callable, traces: Path, settings_of: Callable, tmp_path: Path
) -> None:
    """The same trace gives the same files with the same bytes, and once more into the same place changes nothing."""
    trace = traces / "kafka-7672-eos" / "trace-pod-a.jsonl.gz"
    arguments = ("replay", trace, "--pod", "pod-a", *settings_of("kafka-7672-eos"))
    contents = []
    for folder in ("one", "two", "one"):
        said = statewarden(*arguments, "--events", tmp_path / folder)
        assert said.code == 1
        files = sorted((tmp_path / folder).rglob("*"))
        contents.append({str(x.relative_to(tmp_path / folder)): x.read_bytes() for x in files if x.is_file()})
    assert contents[0]
    assert contents[0] == contents[1] == contents[2]


def test_events_that_cannot_be_written(statewarden: Callable, traces: Path, tmp_path: Path) -> None:
    """A file where the directory should be is 2, with its name."""
    (tmp_path / "events").touch()
    said = statewarden("replay", traces / CRASH / "trace-pod-a.jsonl.gz", "--events", tmp_path / "events")
    assert said.code == 2
    assert f"{tmp_path / 'events'}: events cannot be written: " in said.complaint


def test_settings_may_come_from_a_file(statewarden: Callable, traces: Path, tmp_path: Path) -> None:
    """Tables of the file hold like flags; a flag beats the file."""
    file = tmp_path / "settings.toml"
    file.write_text(
        '[application]\nprocessing_guarantee = "at_least_once"\nnum_standby_replicas = 0\n'
        f'[application."{CRASH_APPLICATION}"]\nprocessing_guarantee = "exactly_once_v2"\n'
        'kafka_streams_version = "4.1.2"\n'
    )
    trace = traces / CRASH / "trace-pod-a.jsonl.gz"
    assert statewarden("replay", trace, "--config", file).code == 1
    flag = f"{CRASH_APPLICATION}:processing_guarantee=at_least_once"
    assert statewarden("replay", trace, "--config", file, "--set", flag).code == 0


def test_the_quiet_period_lets_waiting_rules_speak(statewarden: Callable, traces: Path) -> None:
    """Five minutes without an application are told only if the clock runs on that long."""
    trace = traces / "benign-inmemory-4.1.2" / "trace-pod-a.jsonl.gz"
    short = statewarden("replay", trace, "--json", "--quiet-period", "1s")
    assert "auditor-blind" not in [row["detector"] for row in short.findings]
    long = statewarden("replay", trace, "--json")
    assert "auditor-blind" in [row["detector"] for row in long.findings]
    assert statewarden("replay", trace, "--fail-on", "info").code == 1


def test_a_visible_process_shows_its_release(statewarden: Callable, traces: Path) -> None:
    """The release is asked for unless it is given, or the process may be seen."""
    trace = traces / CRASH / "trace-pod-a.jsonl.gz"
    known = ("--set", "processing_guarantee=exactly_once_v2", "--set", "num_standby_replicas=0", "--json")
    hidden = statewarden("replay", trace, *known).findings
    seen = statewarden("replay", trace, *known, "--process-visible").findings
    assert {row["affected"] for row in hidden if "eos" in row["detector"]} == {"possibly"}
    assert {row["affected"] for row in seen if "eos" in row["detector"]} == {"yes"}
    asked = [
        [x for row in rows if row["detector"] == "undecided" for x in row["missing_facts"]]
        for rows in (hidden, seen)
    ]
    assert asked == [["kafka_streams_version"], []]


def test_whole_applications_that_are_left_over_are_a_remark(statewarden: Callable, tmp_path: Path) -> None:
    """Who renames an application leaves the old one on disk: how many, how large, which."""
    plant(tmp_path / "state")
    plant(tmp_path / "state", application="renamed")
    for path in [*(tmp_path / "state" / "renamed").rglob("*"), tmp_path / "state" / "renamed"]:
        os.utime(path, (1_600_000_000, 1_600_000_000))
    said = statewarden("scan", tmp_path / "state", *PLAIN)
    assert "1 application unused for 30 days, 0 MiB: renamed" in said.out.splitlines()


@pytest.mark.parametrize("command", ["scan", "safe-to-restart"])
def test_links_that_go_round_in_a_circle_are_one_line(
    statewarden: Callable, tmp_path: Path, command: str
) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    said = statewarden(command, loop, *PLAIN)
    assert said.code == 3
    assert said.err == f"statewarden: {loop}: cannot be listed (unreadable); give Kafka Streams' state.dir\n"
