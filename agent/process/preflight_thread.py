"""Preflight beside the running agent: a log line for what is wrong, a metric, and never the end of the agent."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from agent.clock import Clock
from agent.preflight.checks import PATIENT, judge
from agent.preflight.facts import Facts
from agent.preflight.telling import RANK, Level, count

LOG = logging.getLogger("agent.preflight")

AGAIN_S, AGAIN_MOST_S = 60.0, 900.0
"""Distance of the first two rounds; doubled up to the second while something is wrong, or nothing is there yet. What
was repaired raises its alert for no longer than that."""

_LOG_LEVELS = {Level.OK: logging.INFO, Level.WARNING: logging.WARNING, Level.FAILED: logging.ERROR}


class PreflightThread:
    """Checks at the start and again until all is right; on a separate thread, because an endpoint may not answer."""

    def __init__(self, gather: Callable[[float], Facts], clock: Clock) -> None:
        """Prepare; nothing runs before `start`. `gather` is given how long the agent has run, in seconds."""
        self._gather, self._clock = gather, clock
        self._stopping = threading.Event()
        self._reported: dict[str, Level] = {}
        self._levels: Mapping[str, int] = {}
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
        return self._levels

    def _run(self) -> None:
        began_s, pause_s = self._clock.monotonic_s(), AGAIN_S
        while not self._turn(self._clock.monotonic_s() - began_s) and not self._stopping.wait(pause_s):
            pause_s = min(2 * pause_s, AGAIN_MOST_S)

    def _turn(self, waited_s: float) -> bool:
        """Check, and log what is wrong or repaired, each once; what may come right by itself waits for round two."""
        try:
            facts = self._gather(waited_s)
            results = judge(facts)
        except Exception:  # the fence of this thread
            LOG.exception("preflight: a round failed")
            return False
        is_first, early = not self._levels, []
        self._levels = {x.check: RANK[x.level] for x in results}
        for x in results:
            if x.level is self._reported.get(x.check, Level.OK):
                continue
            if is_first and x.check in PATIENT:
                early.append(f"{x.check}: {x.what}")
                continue
            self._reported[x.check] = x.level
            told = (x.check, "fixed" if x.level is Level.OK else x.level.value, x.what)
            extra = {"check": x.check, "where": x.where or None, "change": x.change or None}
            LOG.log(_LOG_LEVELS[x.level], "preflight: %s %s: %s", *told, extra=extra)
        if is_first:
            # a fault that may heal is none for an alert yet, but whoever reads the log is told at once
            more = f"; soon checked again: {'; '.join(early)}" if early else ""
            LOG.info("preflight: %s%s", count(results), more)
        return bool(facts.state.applications) and all(x.level is Level.OK for x in results)
