"""Preflight beside the running agent: a log line for what is wrong, a metric, and never the end of the agent."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from agent.clock import Clock
from agent.preflight.checks import PATIENT, judge
from agent.preflight.facts import Facts
from agent.preflight.telling import Level, Result, count

LOG = logging.getLogger("agent.preflight")

AGAIN_S, AGAIN_MOST_S = 60.0, 900.0
"""Distance of the first two rounds; doubled up to the second while something is wrong, or nothing is there yet. What
was repaired raises its alert for no longer than that."""

_LOG_LEVELS = {Level.OK: logging.INFO, Level.WARNING: logging.WARNING, Level.FAILED: logging.ERROR}


class PreflightThread:
    """Checks at the start and again until all is right; on a separate thread, because an endpoint may not answer."""

    def __init__(self, gather: Callable[[float], Facts], clock: Clock) -> None:
        """Prepare; nothing runs before `start`.

        `gather`: gathers facts; given how long the agent has run, in seconds.
        """
        self._gather, self._clock = gather, clock
        self._stopping = threading.Event()
        self._reported: dict[str, Result] = {}
        self._levels: Mapping[str, Level] = {}
        self._rounds = 0
        self._thread = threading.Thread(target=self._run, name="preflight", daemon=True)

    def start(self) -> None:
        """Begin to check; once."""
        if not self._thread.ident:
            self._thread.start()

    def stop(self) -> None:
        """Check no more. An address that is being tried is not waited for."""
        self._stopping.set()

    def levels(self) -> Mapping[str, int]:
        """Return what came of each check: id -> 0 ok, 1 warning, 2 failed; empty before the first round."""
        return {check: level.rank for check, level in self._levels.items()}

    def _run(self) -> None:
        began_s = self._clock.monotonic_s()
        pause_s = AGAIN_S
        while not self._turn(self._clock.monotonic_s() - began_s):
            if self._stopping.wait(pause_s):
                return
            pause_s = min(2 * pause_s, AGAIN_MOST_S)

    def _turn(self, waited_s: float) -> bool:
        try:
            facts = self._gather(waited_s)
            results = judge(facts)
        except Exception:  # the fence of this thread
            LOG.exception("preflight: a round failed")
            return False
        self._levels = {x.check: x.level for x in results}
        self.report(results)
        self._rounds += 1
        return bool(facts.state.applications) and all(x.level is Level.OK for x in results)

    def report(self, results: tuple[Result, ...]) -> None:
        """Log what is wrong or repaired, each once; what may come right by itself waits for the second round."""
        for result in results:
            before = self._reported.get(result.check)
            is_early = self._rounds == 0 and result.check in PATIENT
            is_news = result.level is not (Level.OK if before is None else before.level)
            if not is_news or is_early:
                continue
            self._reported[result.check] = result
            extra = {"check": result.check, "where": result.where or None, "change": result.change or None}
            word = "fixed" if result.level is Level.OK else result.level.value
            told = (result.check, word, result.what)
            LOG.log(_LOG_LEVELS[result.level], "preflight: %s %s: %s", *told, extra=extra)
        if self._rounds == 0:
            # a fault that may heal is none for an alert yet, but whoever reads the log is told at once
            early = [
                f"{x.check}: {x.what}" for x in results if x.level is not Level.OK and x.check in PATIENT
            ]
            more = f"; soon checked again: {'; '.join(early)}" if early else ""
            LOG.info("preflight: %s%s", count(results), more)
