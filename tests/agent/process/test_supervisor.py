"""How the agent hands its records over: sealed at once when an application stops; a spool that refuses ends nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.clock import current_boot
from agent.config import load_config
from agent.contract.events import Kind, Record
from agent.errors import SpoolError, SpoolFullError
from agent.home.baseline import Remembered
from agent.inventory.disk import LockState
from agent.inventory.model import Application, Task
from agent.preflight.checks import check
from agent.preflight.telling import Level
from agent.process.supervisor import Supervisor
from agent.ship.spool import Spool
from tests.agent.ship.ship_support import HandClock


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    """Give an agent that does not run; its segments are small and seal by age after an hour."""
    (tmp_path / "state").mkdir()
    settings = tmp_path / "settings.toml"
    settings.write_text("[ship]\nseal_kib = 16\nseal_seconds = 3600\ncap_mib = 1\n")
    flags = {
        "state_dir": str(tmp_path / "state"),
        "pod": "orders-0",
        "listen": "",
        "spool": str(tmp_path / "spool"),
        "ship_to": str(tmp_path / "sink"),
    }
    made = Supervisor(load_config(file=settings, flags=flags))
    spool = made._spool
    yield made
    if spool is not None:
        spool.close()


def transition(change: str) -> Record:
    return Record(Kind.TRANSITION, 1, {"application_id": "orders", "change": change})


@pytest.mark.parametrize(
    ("change", "sealed"), [("process-ended", True), ("application-gone", True), ("task-held", False)]
)
def test_the_last_words_of_an_application_are_shipped_at_once(
    supervisor: Supervisor, change: str, sealed: bool
) -> None:
    """When a process ends the pod may be about to go: its records do not wait for the segment's age."""
    supervisor._emit(transition("task-held"))
    supervisor._emit(transition(change))
    assert supervisor._spool is not None
    assert (supervisor._spool.next_parcel() is not None) == sealed


def test_a_spool_that_refuses_is_reported_once_a_minute(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The audit goes on; the log is not flooded; a full spool is told by the spool itself."""
    failures = [*[SpoolError("the disk is gone")] * 5, *[SpoolFullError("full")] * 5]

    def refuse(self: Spool, record: Record) -> int:
        raise failures.pop(0)

    monkeypatch.setattr(Spool, "append", refuse)
    caplog.set_level(logging.INFO)
    for _ in range(10):
        supervisor._emit(transition("task-held"))
    assert [record.getMessage() for record in caplog.records] == ["spool refuses records: the disk is gone"]


def test_the_settings_reach_spool_and_sink(supervisor: Supervisor) -> None:
    """Sizes come from `[ship]`; one request may not outlast the last flush. The spool takes every kind of record."""
    assert supervisor._spool is not None
    assert (supervisor._pipeline.wants_summaries, supervisor._pipeline.wants_transitions) == (True, True)
    limits = supervisor._spool._limits
    assert (limits.seal_bytes, limits.seal_age_s, limits.cap_bytes) == (16 << 10, 3600, 1 << 20)


def test_a_worker_is_alive_while_its_heart_beats(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the limit, which the reason names; before its first turn it is not."""
    clock = HandClock()
    monkeypatch.setattr(supervisor, "_clock", clock)
    assert supervisor._unhealthy() == "the worker has not started"
    supervisor._heartbeat_s = clock.at_s
    clock.at_s += 60.0
    assert supervisor._unhealthy() is None
    clock.at_s += 0.1
    assert supervisor._unhealthy() == "the worker's loop last completed a turn 60 s ago (limit 60 s)"


def test_after_a_signal_it_lingers_while_a_lock_is_held(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only while an application holds something, and never beyond the time that was given."""
    clock = HandClock()
    monkeypatch.setattr(supervisor, "_clock", clock)
    monkeypatch.setattr(supervisor, "_settings", replace(supervisor._settings, linger_seconds=15.0))
    application = Application("orders")
    supervisor._pipeline.inventory.applications["orders"] = application
    assert not supervisor._lingers()
    application.lock = LockState.HELD
    assert supervisor._lingers()
    clock.at_s += 14.9
    assert supervisor._lingers()
    application.lock = LockState.FREE
    assert not supervisor._lingers()
    application.tasks["0_0"] = Task("orders", "0_0", "orders/0_0", held=True)
    assert supervisor._lingers()
    clock.at_s += 0.2
    assert not supervisor._lingers()


def test_after_a_signal_it_lingers_while_digests_are_to_be_made(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application has let go of everything by then: that is when they are made."""
    clock, digests = HandClock(), SimpleNamespace(is_busy=True)
    monkeypatch.setattr(supervisor, "_clock", clock)
    monkeypatch.setattr(supervisor, "_settings", replace(supervisor._settings, linger_seconds=15.0))
    monkeypatch.setattr(supervisor, "_digests", digests)
    assert supervisor._lingers()
    digests.is_busy = False
    assert not supervisor._lingers()
    digests.is_busy = True
    clock.at_s += 15.1
    assert not supervisor._lingers()


def test_what_cannot_be_used_is_done_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No spool, no home, no sink: a line each, and an agent that starts all the same."""
    (tmp_path / "state").mkdir()
    (tmp_path / "file").touch()
    flags = {"state_dir": str(tmp_path / "state"), "pod": "orders-0", "listen": ""}
    Supervisor(load_config(flags=flags | {"spool": str(tmp_path / "file" / "spool")}))
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "no spool",
        "no home",
    ]
    caplog.clear()
    own = {"spool": str(tmp_path / "spool"), "ship_to": str(tmp_path / "state" / "out")}
    one = Supervisor(load_config(flags=flags | own))
    one._end()
    assert "no sink: events stay in the spool: sink directory" in caplog.text
    assert list((tmp_path / "state").iterdir()) == []
    assert "is inside the state directory" in check("endpoint", one._gather_facts(0.0)).what


def test_a_spool_that_cannot_be_opened_fails_in_preflight(tmp_path: Path) -> None:
    """Its directory can be written; what counts is that the agent runs without it."""
    (tmp_path / "state").mkdir()
    (tmp_path / "spool" / "spool.db").mkdir(parents=True)
    one = Supervisor(
        load_config(
            flags={"state_dir": str(tmp_path / "state"), "listen": "", "spool": str(tmp_path / "spool")}
        )
    )
    said = check("spool", one._gather_facts(0.0))
    assert "unable to open database file" in said.what
    assert said.level is Level.FAILED


def test_the_baseline_bears_the_boot_of_the_machine(supervisor: Supervisor) -> None:
    """By it the next agent knows whether somebody set the clock meanwhile."""
    boot = current_boot()
    keeper = supervisor._baseline
    assert boot is not None
    assert keeper is not None
    keeper.finish(1, "SIGTERM")
    found = keeper.load()
    assert isinstance(found, Remembered)
    assert found.boot is not None
    assert found.boot.id == boot.id


def test_a_flag_for_an_application_that_is_not_there_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not before one is there: a fresh volume is no misspelling."""
    (tmp_path / "state").mkdir()
    flags = {"state_dir": str(tmp_path / "state"), "pod": "orders-0", "listen": ""}
    one = Supervisor(load_config(flags=flags, sets=["ordres:num_standby_replicas=1"]))
    one._check_names()
    assert (caplog.records, one._names_checked) == ([], False)
    one._pipeline.inventory.applications["orders"] = Application("orders", exists=True)
    one._check_names()
    assert caplog.messages == ["--set: no application ordres here; did you mean orders? there is: orders"]
    assert one._names_checked
