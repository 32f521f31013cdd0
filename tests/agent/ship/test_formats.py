"""Spools of other releases: an older one is migrated, a newer one refused (test_home)."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from agent.contract.events import Origin
from agent.ship.home import FORMAT
from tests.agent.ship.ship_support import HandClock, drain, drop_rows, files, heartbeat, open_spool, sequences

NEXT_BOOT = Origin(pod_uid="uid-1", boot_id="boot1", pod="orders-0")


def unpacked(repository: Path, target: Path) -> Path:
    """Unpack a spool that an agent of format 1 left when it was killed, one segment of it rotten."""
    target.mkdir()
    with tarfile.open(repository / "tests/data/spool/format-1.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target


def test_a_spool_of_format_1_is_migrated(tmp_path: Path, repository: Path) -> None:
    """Everything whole in it is shipped, its faults are told as ever, and older agents are kept off from now on."""
    folder = unpacked(repository, tmp_path / "spool")
    assert json.loads((folder / "spool.json").read_bytes())["format"] == 1
    with open_spool(folder, HandClock(), NEXT_BOOT) as spool:
        assert json.loads((folder / "spool.json").read_bytes())["format"] == FORMAT == 2
        stats = spool.stats()
        assert (stats.torn_tails, stats.corrupt_segments, stats.aside) == (1, 1, 2)
        spool.append(heartbeat())
        spool.seal()
        rows = drain(spool)
    assert sequences(rows, "boot0") == [1, 2, 6, 7]
    assert drop_rows(rows) == [("unknown", 2, 3, 4, "corrupt-segment; boot boot0")]
    assert files(folder, "rejected") == ["boot0-000000000005-000000000005.rejected"]


def test_a_spool_without_a_position_file_is_of_format_1(tmp_path: Path, repository: Path) -> None:
    """Format 1 wrote that file with the first sealed segment only."""
    folder = unpacked(repository, tmp_path / "spool")
    (folder / "spool.json").unlink()
    with open_spool(folder, HandClock(), NEXT_BOOT) as spool:
        assert sequences(drain(spool), "boot0") == [1, 2, 6, 7]
    assert json.loads((folder / "spool.json").read_bytes())["format"] == 2


def test_a_new_spool_is_stamped_at_once(tmp_path: Path) -> None:
    """An older agent is kept off before the first record is written."""
    open_spool(tmp_path / "spool", HandClock()).close()
    assert json.loads((tmp_path / "spool" / "spool.json").read_bytes()) == {
        "format": 2,
        "boot_id": "",
        "last_sequence": 0,
    }
