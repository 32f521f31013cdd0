"""`statewarden spool`: looks without touching, says what is damaged, rescues what is whole."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.contract.codec import decode
from agent.contract.events import Origin
from tests.agent.cli.commands import Said
from tests.agent.ship.ship_support import HandClock, drain, finding, heartbeat, open_spool, sequences
from tests.support.shipped import shipped_records

Run = Callable[..., Said]


@pytest.fixture
def killed(tmp_path: Path, repository: Path) -> Path:
    """Give a spool as a kill left it: two sealed segments, one of them rotten, one rejected, one half-written."""
    folder = tmp_path / "spool"
    folder.mkdir()
    with tarfile.open(repository / "tests/data/spool/format-1.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Read every file."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_inspect_lists_files_and_totals(statewarden: Run, killed: Path) -> None:
    """One row per file with state, boot, sequences, records, bytes, time and kinds; then totals."""
    said = statewarden("spool", "inspect", killed)
    assert said.code == 0
    lines = said.out.splitlines()
    rows = [line.split() for line in lines]
    assert rows[0] == ["state", "boot", "sequences", "records", "bytes", "oldest", "kinds"]
    assert [(row[0], row[2], row[3]) for row in rows[1:5]] == [
        ("sealed", "1-2", "2"),
        ("damaged", "3-4", "1"),
        ("rejected", "5-5", "1"),
        ("open", "6-7", "2"),
    ]
    assert "465 bytes half-written" in said.out
    assert lines[5] == "1 open, 2 sealed, 1 rejected; 6 records, 4,451 bytes; format 1"


def test_reading_parts_change_nothing(statewarden: Run, killed: Path, tmp_path: Path) -> None:
    """inspect, verify and export leave every file as it was, and make none."""
    before = contents(killed)
    for part in (["inspect"], ["inspect", "--json"], ["verify"], ["verify", "--json"], ["export"]):
        statewarden("spool", part[0], killed, *part[1:])
    statewarden("spool", "export", killed, "--to", tmp_path / "out")
    assert contents(killed) == before


def test_reading_parts_work_beside_an_agent(statewarden: Run, tmp_path: Path) -> None:
    """A spool in use is shown, its half-written segment too; repair refuses it."""
    with open_spool(tmp_path / "spool", HandClock()) as spool:
        spool.append(heartbeat())
        spool.seal()
        spool.append(finding())
        assert [
            row["state"] for row in statewarden("spool", "inspect", tmp_path / "spool", "--json").rows
        ] == [
            "sealed",
            "open",
        ]
        assert statewarden("spool", "verify", tmp_path / "spool").code == 0
        assert "in use by another" in statewarden("spool", "repair", tmp_path / "spool").complaint


def test_verify_names_what_is_damaged(statewarden: Run, killed: Path) -> None:
    """Exit 1 for damage; a torn tail is normal; sequences that are in no file are told."""
    said = statewarden("spool", "verify", killed)
    assert said.code == 1
    assert said.out.splitlines() == [
        "damaged   boot0-000000000003-000000000004.sealed: 1 of 2 records are whole",
        "torn      boot0-000000000006.open: 465 bytes; the next start cuts them",
        "4 files, 6 whole records, 1 files damaged",
    ]
    (row,) = statewarden("spool", "verify", killed, "--json").rows
    assert (row["fault"], row["kinds"]) == ("1 of 2 records are whole", {"transition": 1})
    (killed / "boot0-000000000003-000000000004.sealed").unlink()
    said = statewarden("spool", "verify", killed)
    assert (said.code, said.out.splitlines()[1]) == (0, "not here  boot0 3 to 4: shipped before, or given up")


def test_export_gives_every_whole_record(statewarden: Run, killed: Path, tmp_path: Path) -> None:
    """As JSON lines, or as segments that the rollup reads; damage costs only the damaged record."""
    said = statewarden("spool", "export", killed)
    assert [decode(line)["sequence"] for line in said.out.splitlines()] == [1, 2, 4, 5, 6, 7]
    said = statewarden("spool", "export", killed, "--to", tmp_path / "out")
    assert said.out == f"{tmp_path / 'out'}: 6 records of 4 files\n"
    assert [record["sequence"] for record in shipped_records(tmp_path / "out")] == [1, 2, 4, 5, 6, 7]
    again = statewarden("spool", "export", killed, "--to", tmp_path / "out")
    assert again.code == 0


def test_export_says_where_it_cannot_write(statewarden: Run, killed: Path, tmp_path: Path) -> None:
    """A file in the way is named."""
    (tmp_path / "out").write_text("x")
    assert "out: cannot be written" in statewarden("spool", "export", killed, "--to", tmp_path / "out").err


def test_repair_rescues_what_is_whole(statewarden: Run, killed: Path) -> None:
    """Torn tails are cut, damage gives back its whole records, and the next agent ships all of it."""
    (result,) = statewarden("spool", "repair", killed, "--json").rows
    assert result == {"torn_tails": 1, "quarantined": 1, "salvaged_records": 1, "hopeless": 0, "retried": 0}
    assert statewarden("spool", "verify", killed).code == 0
    with open_spool(killed, HandClock(), Origin("uid-1", "boot1", "orders-0")) as spool:
        assert sequences(drain(spool), "boot0") == [1, 2, 4, 6, 7]


def test_repair_retries_what_was_rejected(statewarden: Run, killed: Path) -> None:
    """On demand only; and a segment without a whole record stays in quarantine."""
    (killed / "boot0-000000000008-000000000009.bad").write_bytes(b"\0" * 50)
    said = statewarden("spool", "repair", killed, "--retry-rejected")
    assert [line.split() for line in said.out.splitlines()] == [
        ["torn", "tails", "1"],
        ["quarantined", "1"],
        ["salvaged", "records", "1"],
        ["hopeless", "1"],
        ["retried", "1"],
    ]
    with open_spool(killed, HandClock(), Origin("uid-1", "boot1", "orders-0")) as spool:
        assert 5 in sequences(drain(spool), "boot0")


@pytest.mark.parametrize("part", ["inspect", "verify", "export", "repair"])
def test_what_is_no_spool(statewarden: Run, tmp_path: Path, part: str) -> None:
    """A wrong directory, a missing one, and a spool of a later release are refused and left alone."""
    (tmp_path / "notes.txt").write_text("mine")
    assert "holds no spool" in statewarden("spool", part, tmp_path).complaint
    assert "No such file" in statewarden("spool", part, tmp_path / "none").complaint
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "spool.json").write_text(json.dumps({"format": 9, "boot_id": "b", "last_sequence": 1}))
    assert "has format 9, this agent knows up to 2" in statewarden("spool", part, tmp_path).complaint
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "spool.json"}


def test_hostile_files_are_survived(statewarden: Run, tmp_path: Path) -> None:
    """Records that are no events, and names with control characters, are shown harmlessly."""
    (tmp_path / "lock").touch()
    (tmp_path / "a\x1bb-000000000001.open").write_bytes(b"")
    (tmp_path / "b-000000000001.open").write_bytes(b"00000002 6b1c4b24 {}\n")
    said = statewarden("spool", "inspect", tmp_path)
    assert said.code == 0
    assert "\x1b" not in said.out


def test_a_second_agent_on_one_spool_refuses_to_start(tmp_path: Path, repository: Path) -> None:
    """One line, exit code 2, and the first one's spool as it was."""
    (tmp_path / "state").mkdir()
    command = [
        sys.executable,
        "-m",
        "agent",
        "run",
        str(tmp_path / "state"),
        "--spool",
        str(tmp_path / "spool"),
    ]
    with open_spool(tmp_path / "spool", HandClock()) as spool:
        spool.append(heartbeat())
        before = contents(tmp_path / "spool")
        done = subprocess.run(
            command, cwd=repository, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            "is in use by another statewarden agent; give each agent a spool directory of its own"
            in done.stderr
        )
        assert contents(tmp_path / "spool") == before
