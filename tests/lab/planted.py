"""Faults planted into Kafka Streams, which nobody has reported: what do the laws say of them?

Every detector of a known fault is disabled, so that a law has no one to yield to, and whichever says it will do. What
is true is compared as in a drawn run. Not every release has a place for each (`faults.py`): `--wide` leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.detectors import DETECTORS
from tests.lab.plan import ALOS, EOS
from tests.lab.scenario import Affected, Scenario, releases
from tests.lab.written import Play
from tests.support.laws import LAWS

LAW_IDS = tuple(x.meta.id for x in LAWS)
OTHERS_DISABLED = {
    "STATEWARDEN_DETECTORS_DISABLED": ";".join(
        f"{x.meta.id}=blind check" for x in DETECTORS if not x.meta.is_law
    )
}
USUAL: Mapping[str, object] = {
    "commit.interval.ms": 500,
    "state.cleanup.delay.ms": 600_000,
    "session.timeout.ms": 6000,
    "live.write.buffer": 65_536,
    "retention.ms": 120_000,
    "grace.ms": 20_000,
    "window.ms": 10_000,
}


def _planted(
    fault: str,
    play: Play,
    guarantee: str = ALOS,
    stores: str = "kv",
    settings: Mapping[str, object] | None = None,
    affected: Affected = lambda _plan: True,
) -> Scenario:
    """Give the scenario of a fault; where it is not affected no disk shows it, and no store is wrong."""
    chosen = {**USUAL, "live.planted": fault, **(settings or {})}
    plan = {"stores": stores, "partitions": 1, "settings": chosen}
    return Scenario(play, (guarantee,), plan, affected, find=LAW_IDS, always=LAW_IDS, fault=fault)


PLANTED: dict[str, Scenario] = {
    "planted-skip-wipe": _planted(
        "skip-wipe",
        Play(
            "Killed with uncommitted records on disk, which the next start does not wipe.",
            """
            join a; feed 2500 1 0; caught-up; stop; back a; feed 10 1 0; caught-up
            feed-and-flush 6000; kill; back a; check; stop; back a; stop
            """,
        ),
        EOS,
        settings={"commit.interval.ms": 10_000, "producer.transaction.timeout.ms": 30_000},
    ),
    "planted-drop-segment": _planted(
        "drop-segment",
        Play(
            "Stream time goes through three segments, and the one in the middle is deleted.",
            f"join a; {3 * 'feed 300 1 60000; caught-up; '}idle 15 'segments are settled'; check; stop",
        ),
        stores="kv,window",
    ),
    # nothing is flushed before a close or, up to 4.2, a checkpoint
    "planted-other-offset": _planted(
        "other-offset",
        Play(
            "Killed while one store's offset on disk is behind, and restored from another store's, which is higher.",
            """
            join a; feed 300 1 0; caught-up; feed-again 100 -1000 is_deletion=no; caught-up; stop; back a
            feed 300 1 60000; caught-up; kill; back a; check; stop; back a; stop
            """,
        ),
        stores="kv,session",
        settings={"live.write.buffer": 16_777_216},
    ),
    "planted-delete-held": _planted(
        "delete-held",
        Play(
            "The cleaner comes twice, and takes the directories of running tasks, too.",
            """
            join a; feed 2500 1 0; caught-up; stop; back a; feed 300 1 0; caught-up
            idle 16 'the cleaner comes'; feed 300 1 0; caught-up; check; stop
            """,
        ),
        settings={"state.cleanup.delay.ms": 5000},
    ),
    "planted-replay-twice": _planted(
        "replay-twice",
        Play(
            "A pod that comes back without its disk restores a changelog to its end, and once more from its beginning.",
            "join a; feed 2500 1 0; caught-up; stop; clean-back; check; stop; back a; stop",
        ),
        affected=releases(("2.0.0", "4.3.0")),
    ),
}
"""Each is named by its fault."""
