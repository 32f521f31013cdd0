"""Snapshots of recorded runs: what one look at the files alone can decide."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from agent.cli import main

DATA = Path(__file__).resolve().parents[1] / "data"


def scanned(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, with_times: bool = True
) -> list[tuple[str, str, str, str]]:
    """Scan an unpacked snapshot with its scenario's settings; (detector, task, severity, confidence)."""

    def unpack(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
        safe = tarfile.data_filter(member, path)
        return safe if with_times else safe.replace(mtime=None)  # type: ignore[arg-type] # None: not set

    with tarfile.open(DATA / "snapshots" / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter=unpack)
    settings = json.loads((DATA / "traces" / name / "scenario.json").read_text("utf-8"))["settings"]
    flags = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    main(["scan", str(tmp_path), "--json", *flags])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [row for row in rows if row["line"] == "finding"]
    return [(row["detector"], row["task_id"], row["severity"], row["confidence"]) for row in found]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kafka-20685-4.1.2", [("stale-eos-checkpoint", "0_0", "critical", "suspected")]),
        ("dirty-close-kill-4.3.1", [("false-clean-store", "0_0", "critical", "suspected")]),
        ("torn-clean-3.9.2", [("torn-store", "0_0", "critical", "confirmed")]),
        ("torn-clean-half-2.4.1", [("resurrected-checkpoint", "1_2", "critical", "confirmed")]),
        ("eos-4.3.1-crash-unflushed", []),
        ("benign-restart-eos-4.1.2", []),
    ],
)
def test_scan_of_a_snapshot(
    name: str,
    expected: list[tuple[str, str, str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A killed pod's volume tells what the next start would trust; a healthy one is quiet."""
    assert [x for x in scanned(name, tmp_path, capsys) if x[2] != "info"] == expected


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("benign-restart-eos-4.1.2", ["0_0", "0_1"]),
        ("control-crash-in-restore-4.1.2", ["0_0"]),
        ("kafka-8187-stage1-mixed-2.1.1", ["0_0", "0_1", "0_2"]),
        ("torn-clean-half-2.4.1", ["0_0", "0_1", "0_2", "1_0", "1_1", "1_2"]),
    ],
)
def test_scan_of_a_snapshot_without_its_times(
    name: str, unknown: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `kubectl cp`, `cp -r`, `rsync -r` copy it: nobody is accused, and what cannot be told is said once a task."""
    found = scanned(name, tmp_path, capsys, with_times=False)
    assert [x for x in found if x[2] == "critical"] == []
    said = [x for x in found if x[0] == "resurrected-checkpoint"]
    assert sorted(said) == [("resurrected-checkpoint", task, "info", "unknown") for task in unknown]
