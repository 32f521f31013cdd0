"""When the agent is alive and when it is ready: pure rules for the probes.

Both answer None when all is well, else the reason in one line.
"""

from __future__ import annotations

HEARTBEAT_LIMIT_S = 60.0
"""A worker that did not complete a turn for this long counts as dead; its loop turns every few seconds."""


def liveness(heartbeat_s: float | None, now_s: float, limit_s: float = HEARTBEAT_LIMIT_S) -> str | None:
    """Judge the worker by its own heartbeat, never by that of a thread that watches over it.

    `heartbeat_s`: monotonic time at which the worker's loop last completed a turn; None = not yet. `limit_s`: age
    from which the worker counts as dead. Gives the reason why the agent is not alive, or None.
    """
    if heartbeat_s is None:
        return "the worker has not started"
    age_s = now_s - heartbeat_s
    if age_s > limit_s:
        return f"the worker's loop last completed a turn {age_s:.0f} s ago (limit {limit_s:.0f} s)"
    return None


def readiness(*, is_ready: bool) -> str | None:
    """Return why findings cannot be relied on; None = they can: the watch is armed, and the first scan is done."""
    return None if is_ready else "the watch is not armed"
