"""`statewarden spool`: one line about what waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.agent.cli.commands import Said
from tests.agent.ship.ship_support import HandClock, finding, heartbeat, on_disk, open_spool

Run = Callable[..., Said]


def test_it_says_what_waits(statewarden: Run, tmp_path: Path) -> None:
    """Segments, records, the oldest, the size; what was set aside only if there is something."""
    with open_spool(tmp_path, HandClock()) as spool:
        spool.append(heartbeat())
        spool.seal()
        spool.append(finding())
        spool.seal()
        said = statewarden("spool", tmp_path)
        size = f"{on_disk(tmp_path):,}"
        assert said.code == 0
        assert said.out == (
            "2 segments wait, 2 records, the oldest of 2023-11-14T22:13:20Z;"
            f" {size} bytes on disk (as of the last checkpoint)\n"
        )
        parcel = spool.next_parcel()
        assert parcel is not None
        spool.reject(parcel)
    (tmp_path / "spool.db.bad").touch()
    said = statewarden("spool", tmp_path)
    assert "; 1 segments rejected by the sink; a damaged database is kept as spool.db.bad (" in said.out


def test_an_empty_spool_is_no_trouble(statewarden: Run, tmp_path: Path) -> None:
    """Nothing waits."""
    open_spool(tmp_path, HandClock()).close()
    assert statewarden("spool", tmp_path).out.startswith("0 segments wait, 0 records; ")


def test_what_is_no_spool_is_refused(statewarden: Run, tmp_path: Path) -> None:
    """Exit code 2 and a line that says why."""
    said = statewarden("spool", tmp_path)
    assert said.code == 2
    assert "holds no spool" in said.complaint
