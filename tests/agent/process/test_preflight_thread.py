"""Preflight beside the agent: it tells once, comes back until all is right, and never ends the agent."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from agent.clock import SystemClock
from agent.preflight.checks import CHECKS
from agent.preflight.facts import Facts
from agent.preflight.telling import Level, Result
from agent.process import preflight_thread
from agent.process.preflight_thread import PreflightThread
from tests.agent.preflight.preflight_support import state


def all_but(check: str = "", what: str = "", change: str = "") -> tuple[Result, ...]:
    """Give results of a round in which nothing fails, but one."""
    return tuple(
        Result(x, Level.FAILED, what, "", change) if x == check else Result(x, Level.OK, f"{x} is well")
        for x in CHECKS
    )


FINE = all_but()
NO_SPOOL = all_but("spool", "cannot be written", "fsGroup")
ODD, AWAY = all_but("endpoint", "no such scheme"), all_but("endpoint", "Connection refused")
WELL = (logging.INFO, "preflight: 9 ok, 0 warning, 0 failed")
EARLY = "preflight: 8 ok, 0 warning, 1 failed; soon checked again: endpoint: "
FAILED = (logging.ERROR, "preflight: spool failed: cannot be written")


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ([FINE], [WELL]),
        # all is well, and there is no application yet
        ([FINE, FINE], [WELL]),
        # what may heal is named at once, and whether it stays so, the second round says
        ([ODD, FINE], [(logging.INFO, f"{EARLY}no such scheme")]),
        ([AWAY, AWAY, FINE], [
            (logging.INFO, f"{EARLY}Connection refused"),
            (logging.ERROR, "preflight: endpoint failed: Connection refused"),
            (logging.INFO, "preflight: endpoint fixed: endpoint is well"),
        ]),
        # a failure is reported once, and its end
        ([NO_SPOOL, NO_SPOOL, FINE], [
            FAILED, (logging.INFO, "preflight: 8 ok, 0 warning, 1 failed"),
            (logging.INFO, "preflight: spool fixed: spool is well"),
        ]),
        # the fence: nothing that preflight stumbles over ends it, or the agent
        ([RuntimeError("odd"), FINE], [(logging.ERROR, "preflight: a round failed"), WELL]),
    ],
)  # fmt: skip
def test_each_round_says_what_is_news(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, eventually: Callable,
    rounds: list[tuple[Result, ...] | Exception], said: list[tuple[int, str]],
) -> None:  # fmt: skip
    """It looks until all is well; then every check is at 0, and the thread ends."""
    monkeypatch.setattr(preflight_thread, "AGAIN_S", 0.0)
    caplog.set_level(logging.INFO)
    left = list(rounds)

    def judge(facts: Facts) -> tuple[Result, ...]:
        one = left.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    monkeypatch.setattr(preflight_thread, "judge", judge)
    thread = PreflightThread(lambda _: state(applications=["app"] if len(left) == 1 else []), SystemClock())
    thread.start()
    thread.start()  # the worker may ask again
    eventually(lambda: not thread._thread.is_alive())
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == said
    assert (left, list(thread.levels().values())) == ([], [0] * 9)
    if said[0] == FAILED:
        assert caplog.records[0].change == "fsGroup"  # type: ignore[attr-defined]
