"""Snapshots of recorded runs: what one look at the files alone can decide."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from agent.cli import main

DATA = Path(__file__).resolve().parents[1] / "data"


def scanned(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, str, str]]:
    """Scan an unpacked snapshot with its scenario's settings; (detector, task, severity, confidence), no info."""
    with tarfile.open(DATA / "snapshots" / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    settings = json.loads((DATA / "traces" / name / "scenario.json").read_text("utf-8"))["settings"]
    flags = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    main(["scan", str(tmp_path), "--json", *flags])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [
        (row["detector"], row["task_id"], row["severity"], row["confidence"])
        for row in rows
        if row["severity"] != "info"
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kafka-20685-4.1.2", [("stale-eos-checkpoint", "0_0", "warning", "confirmed")]),
        ("dirty-close-kill-4.3.1", [("false-clean-store", "0_0", "warning", "suspected")]),
        ("torn-clean-3.9.2", [("torn-store", "0_0", "warning", "confirmed")]),
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
    assert scanned(name, tmp_path, capsys) == expected
