"""Liveness follows the worker's own heartbeat; readiness follows watch and first scan."""

from __future__ import annotations

from agent.publish.health import liveness


def test_a_recent_heartbeat_is_alive() -> None:
    """A worker is alive up to the limit and dead beyond it."""
    assert liveness(100.0, 160.0, limit_s=60.0) is None
    assert (
        liveness(100.0, 160.1, limit_s=60.0)
        == "the worker's loop last completed a turn 60 s ago (limit 60 s)"
    )


def test_a_worker_that_never_started_is_not_alive() -> None:
    """Without any heartbeat the reason says so."""
    assert liveness(None, 5.0) == "the worker has not started"
