"""The drop order as a table: which records are given up first when room is needed. Pure."""

from __future__ import annotations

from agent.contract.events import Kind

FOLDED, HIGHEST = 0, 3
"""Drop records are folded rather than lost: the next announcement says what they said. So any record may displace
them, and a sink that is away for weeks does not fill the spool with announcements."""

_RANKS = {
    Kind.DROP.value: FOLDED,
    Kind.SUMMARY.value: 1,
    Kind.DIGEST.value: 1,
    Kind.TRANSITION.value: 2,
    Kind.HEARTBEAT.value: 2,
}
"""The next summary says it all again; a digest is large, and another one can be made; transitions and heartbeats come
in masses. All other kinds are rare, and findings are what matters most."""


def rank_of(kind: str) -> int:
    """Rank a record kind: 0 is given up first; unknown kinds are kept longest."""
    return _RANKS.get(kind, HIGHEST)
