"""The one loss that may stay unannounced: a volume that is full, and a kill. The next heartbeat tells of it.

What the rollup makes of a heartbeat that counts more than it knows is in `tests/spark_rollup/fleet/test_levels.py`.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.config import load_config
from agent.contract.events import Kind, Origin, Record
from agent.engine.pipeline import Pipeline
from agent.errors import SpoolError
from agent.home.baseline import understand
from agent.ship.database import Database, NoRoomError
from agent.ship.spool import Spool
from tests.agent.engine.playing import run_of, sets_of
from tests.agent.home.restarting import STATE, lines_of
from tests.agent.ship.ship_support import HandClock, drain, drop_rows, killed, open_spool

RECORDING = "kafka-20685-4.1.2"


def keep(spool: Spool, record: Record) -> None:
    """Hand a record to the spool as the agent does: what is refused is the spool's to tell."""
    with suppress(SpoolError):
        spool.append(record)


def test_a_finding_that_a_full_volume_took_is_counted_by_the_next_boot(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finding and the announcement of its loss are gone; the first heartbeat carries its id and the counts."""
    run = run_of(RECORDING, "pod-a")
    is_open = [x for x in run.pipeline.ledger.open_findings() if x.severity.value != "info"]
    real = Database.run

    def run_statement(self: Database, statement: str, values: tuple[Any, ...] = ()) -> Any:
        if statement.startswith("INSERT"):
            raise NoRoomError("database or disk is full")
        return real(self, statement, values)

    with open_spool(tmp_path / "spool", clock) as spool:
        with monkeypatch.context() as patch:
            patch.setattr(Database, "run", run_statement)
            for record in run.records:
                keep(spool, record)
        killed(tmp_path / "spool", tmp_path / "after")

    baseline = understand(iter(lines_of(run.pipeline, run.now_us)), STATE, run.now_us)
    with open_spool(tmp_path / "after", clock, Origin("uid-1", "boot2", "orders-0")) as spool:
        book = load_config(sets=sets_of(RECORDING)).applications
        pipeline = Pipeline(run.disk, book, run.now_us, partial(keep, spool))
        pipeline.resume(baseline.inventory, baseline.findings, run.now_us, "it was killed")
        pipeline.scan(run.now_us)
        pipeline.beat(run.now_us)
        spool.seal()
        rows = drain(spool)
    assert is_open
    assert drop_rows(rows) == []
    assert {row["boot_id"] for row in rows} == {"boot2"}
    (heartbeat,) = [row for row in rows if row["kind"] == Kind.HEARTBEAT.value]
    assert heartbeat["open_criticals"] + heartbeat["open_warnings"] == len(is_open)
    assert set(heartbeat["open_ids"]) == {x.id for x in is_open}
