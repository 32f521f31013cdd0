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

NO_SPOOL = replace(GOOD, spool=OwnVolume(path="/own/spool", refusal="Permission denied"))
ODD, AWAY = endpoint(settings_refusal="no such scheme"), endpoint(refusals=("c:443: Connection refused",))
WELL = (logging.INFO, "preflight: 9 ok, 0 warning, 0 failed")
EARLY = "preflight: 8 ok, 0 warning, 1 failed; soon checked again: endpoint: "
FAILED = (
    logging.ERROR, "preflight: spool failed: cannot be written (Permission denied): the agent runs without a spool",
)  # fmt: skip


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ([GOOD], [WELL]),
        # what may heal is named at once, and whether it stays so, the second round says
        ([ODD, GOOD], [(logging.INFO, f"{EARLY}no such scheme")]),
        ([AWAY, AWAY, GOOD], [
            (logging.INFO, f"{EARLY}cannot be reached: c:443: Connection refused"),
            (logging.ERROR, "preflight: endpoint failed: cannot be reached: c:443: Connection refused"),
            (logging.INFO, "preflight: endpoint fixed: reached: example.com:443"),
        ]),
        # a failure is reported once, and its end
        ([NO_SPOOL, NO_SPOOL, GOOD], [
            FAILED, (logging.INFO, "preflight: 8 ok, 0 warning, 1 failed"),
            (logging.INFO, "preflight: spool fixed: writable, 500 MiB free"),
        ]),
        # the fence: nothing that preflight stumbles over ends it, or the agent
        ([RuntimeError("odd"), GOOD], [(logging.ERROR, "preflight: a round failed"), WELL]),
    ],
)  # fmt: skip
def test_each_round_says_what_is_news(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, eventually: Callable,
    rounds: list[Facts | Exception], said: list[tuple[int, str]],
) -> None:  # fmt: skip
    """It looks until all is well; then every check is at 0, and the thread ends."""
    monkeypatch.setattr(preflight_thread, "AGAIN_S", 0.0)
    caplog.set_level(logging.INFO)
    left = list(rounds)

    def gather(waited_s: float) -> Facts:
        one = left.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    thread = PreflightThread(gather, SystemClock())
    thread.start()
    thread.start()  # the worker may ask again
    eventually(lambda: not thread._thread.is_alive())
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == said
    assert list(thread.levels().values()) == [0] * 9
    if said[0] == FAILED:
        assert "fsGroup" in caplog.records[0].change  # type: ignore[attr-defined]
