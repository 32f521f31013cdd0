"""Preflight beside the agent: it tells once, comes back until all is right, and never ends the agent."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from agent.clock import SystemClock
from agent.preflight.facts import Facts, OwnVolume
from agent.process import preflight_thread
from agent.process.preflight_thread import PreflightThread
from tests.agent.preflight.preflight_support import GOOD, endpoint


def run(
    rounds: list[Facts | Exception], monkeypatch: pytest.MonkeyPatch, eventually: Callable
) -> PreflightThread:
    """Let the thread look until it has had every round."""
    monkeypatch.setattr(preflight_thread, "AGAIN_S", 0.0)
    left = list(rounds)

    def gather(waited_s: float) -> Facts:
        one = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(one, Exception):
            raise one
        return one

    thread = PreflightThread(gather, SystemClock())
    thread.start()
    thread.start()  # the worker may ask again
    eventually(lambda: not thread._thread.is_alive())
    return thread


def messages(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_all_well_is_one_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, eventually: Callable
) -> None:
    """One round, one line, every check at 0."""
    caplog.set_level(logging.INFO)
    thread = run([GOOD], monkeypatch, eventually)
    assert messages(caplog) == [(logging.INFO, "preflight: 9 ok, 0 warning, 0 failed")]
    assert set(thread.levels().values()) == {0}
    assert len(thread.levels()) == 9


def test_what_may_heal_is_named_at_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, eventually: Callable
) -> None:
    """The count of the first round says which checks it means; whether it stays so, the second round says."""
    caplog.set_level(logging.INFO)
    bad = replace(GOOD, endpoint=replace(GOOD.endpoint, settings_refusal="no such scheme"))
    run([bad, GOOD], monkeypatch, eventually)
    told = messages(caplog)
    assert told[0] == (
        logging.INFO,
        "preflight: 8 ok, 0 warning, 1 failed; soon checked again: endpoint: no such scheme",
    )


def test_a_failure_is_reported_once_and_its_end_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, eventually: Callable
) -> None:
    """Two rounds with the same mistake make one line with the line to change; then it is fixed."""
    caplog.set_level(logging.INFO)
    bad = replace(GOOD, spool=OwnVolume(path="/own/spool", refusal="Permission denied"))
    run([bad, bad, GOOD], monkeypatch, eventually)
    told = messages(caplog)
    assert [level for level, _ in told] == [logging.ERROR, logging.INFO, logging.INFO]
    assert "preflight: spool failed: cannot be written (Permission denied)" in told[0][1]
    assert "fsGroup" in caplog.records[0].change  # type: ignore[attr-defined]
    assert "preflight: spool fixed" in told[2][1]


def test_what_may_come_by_itself_is_not_reported_in_the_first_round(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, eventually: Callable
) -> None:
    """A network that comes up with the pod is no news; one that stays away is."""
    caplog.set_level(logging.WARNING)
    away = endpoint(refusals=("collector:443: Connection refused",))
    run([away, GOOD], monkeypatch, eventually)
    assert messages(caplog) == []
    run([away, away, GOOD], monkeypatch, eventually)
    assert [text for _, text in messages(caplog)] == [
        "preflight: endpoint failed: cannot be reached: collector:443: Connection refused"
    ]


def test_a_round_that_breaks_is_reported_and_repeated(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, eventually: Callable
) -> None:
    """The fence: nothing that preflight stumbles over ends it, or the agent."""
    caplog.set_level(logging.ERROR)
    thread = run([RuntimeError("odd"), GOOD], monkeypatch, eventually)
    assert messages(caplog) == [(logging.ERROR, "preflight: a round failed")]
    assert set(thread.levels().values()) == {0}
