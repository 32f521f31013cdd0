"""The catalogue of scenarios: how each is run, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.lab.plan import ALOS, EACH_POD, EOS, TRANSACTIONAL_SINCE
from tests.lab.planted import PLANTED
from tests.lab.plays import PLAYS
from tests.lab.scenario import (
    BOTH,
    Affected,
    Scenario,
    but_transactional,
    exposed,
    or_transactional,
    releases,
    transactional,
)

LONG_COMMIT = {"commit.interval.ms": 60_000, "producer.transaction.timeout.ms": 120_000}
UPGRADING = {"upgrade.from": "4.2"}
"""In the middle of a rolling upgrade: from 4.3 on every close then writes the old `.checkpoint`, too."""
BROKER_ASSIGNS = {"group.protocol": "streams", "session.timeout.ms": None, "heartbeat.interval.ms": None}
"""The broker assigns tasks (KIP-1071); its own settings tell sessions and heartbeats."""
STALL = {
    "commit.interval.ms": 2000,
    "producer.max.block.ms": 2000,
    "producer.linger.ms": 0,
    "session.timeout.ms": 20_000,
    "task.timeout.ms": 60_000,
}
"""A commit that the broker does not answer gives up before the membership does."""
COMPACTING = {
    "topic.segment.ms": 500,
    "topic.min.cleanable.dirty.ratio": 0.01,
    "topic.delete.retention.ms": 100,
}


EXPOSED: dict[str, Any] = {"affected": exposed, "allow": ("skipped-eos-wipe", "stale-eos-checkpoint")}
"""KAFKA-20685, where it may do harm; and where it does."""
AT_RISK: dict[str, Any] = {"affected": exposed, "allow": ("stale-eos-checkpoint",)}
KEPT: dict[str, Any] = {**EXPOSED, "find": ("skipped-eos-wipe",), "allow": ("stale-eos-checkpoint",)}
CLEANS_EARLY = releases(("4.3.0", "4.4.0"))
"""KAFKA-20805."""
GOES_ON_FROM_ONE = releases(("4.3.0", ""))
"""A store of segments goes on from one segment's offset."""


def _played(
    name: str,
    stores: str = "",
    settings: Mapping[str, object] | None = None,
    guarantees: tuple[str, ...] = BOTH,
    *,
    partitions: int = 0,
    before: str = "",
    **judged: Any,
) -> Scenario:
    """Give the scenario of a play; of the plan what is not given is usual."""
    plan = {"stores": stores, "settings": settings, "partitions": partitions, "before": before}
    return Scenario(PLAYS[name], guarantees, {key: value for key, value in plan.items() if value}, **judged)


def _scale(stores: str, standbys: int = 0) -> Scenario:
    """A pod joins and leaves, with a short cleanup delay; 4.3.0 and 4.3.1 clean early (KAFKA-20805)."""
    settings = {"state.cleanup.delay.ms": 6000, **({"num.standby.replicas": standbys} if standbys else {})}
    return _played("scale", stores, settings, affected=CLEANS_EARLY, allow=("premature-cleanup",))


def _lost_segment(
    name: str, store: str, guarantees: tuple[str, ...], affected: Affected = GOES_ON_FROM_ONE
) -> Scenario:
    """A store of segments is killed and started again; from 4.3.0 on it goes on from one segment's offset."""
    return _played(
        name, f"kv,{store}", None, guarantees, partitions=1, affected=affected, find=("lost-segment",),
        severity="critical", allow=("stale-segment-offset", "unopenable-task"), since="4.2.0",
    )  # fmt: skip


def _upgraded(before: str, affected: Affected, allow: tuple[str, ...], find: tuple[str, ...]) -> Scenario:
    """An older release is killed with flushed records that are not committed; the next start is of the plan's own."""
    return _played(
        "upgraded-crash", "", LONG_COMMIT, (EOS,), before=before, affected=affected, find=find, allow=allow,
        since=TRANSACTIONAL_SINCE,
    )  # fmt: skip


def _torn(name: str, stores: str, settings: Mapping[str, object] | None, *allow: str) -> Scenario:
    """A deletion is killed half way, with the checkpoint left."""
    return _played(
        name, stores, settings, affected=releases(("2.0.0", "4.3.0")), always=("torn-store",),
        find=("resurrected-checkpoint", "torn-store"), allow=("unrestored-store", *allow),
    )  # fmt: skip


def _truncated(name: str) -> Scenario:
    """The changelog is deleted, the state is kept."""
    return _played(
        name, "kv,plain", None, (ALOS,), affected=lambda _plan: True, find=("changelog-truncated",)
    )


POISON = {"live.poison": 1}
UNCOMMITTED = ("skipped-eos-wipe", "interrupted-wipe", "data-beyond-changelog")
"""Of what an older release left uncommitted, one must be said."""
USUAL = "kv,plain,window,session,table"

SCENARIOS: dict[str, Scenario] = {
    "life": _played("life", "all"),
    "life-big": _played(
        "life", "kv,window", {"live.write.buffer": 16_777_216, "commit.interval.ms": 100}
    ),
    "life-slow-commit": _played("life-uncommitted", "kv,window", {"commit.interval.ms": 30_000}, (ALOS,)),
    "scale": _scale("kv,window,memory"),
    "scale-standby": _scale("kv,window,memory", 1),
    "life-odd": _played("life", "odd", {"live.universal": 1}),
    "scale-odd": _scale("odd", 1),
    "busy-crash-odd": _played("busy-crash", "odd", **EXPOSED),
    "life-unlogged": _played("life-unlogged", "unlogged"),
    "life-late-odd": _played("life-late", "odd"),
    "upgrade-odd": _played("upgrade", "odd"),
    "fenced-odd": _played("fenced", "odd"),
    "threads": _played("threads", "kv,window", {"num.stream.threads": 2}, partitions=4, since="2.8.0"),
    "fenced": _played("fenced", "kv,window,table"),
    "busy-crash": _played("busy-crash", **EXPOSED),
    "crash-restoring": _played("crash-restoring", "kv,plain", **AT_RISK),
    "close-restoring": _played("close-restoring", "kv,plain", **AT_RISK),
    "new-store": _played("new-store"),
    "upgrade": _played("upgrade", USUAL),
    "downgrade": _played("downgrade", USUAL, since=TRANSACTIONAL_SINCE),
    "stall": _played("stall", "", STALL),
    "compacted": _played("compacted", "kv,plain,table", COMPACTING),
    "standby-crash": _played("standby-crash", "kv,window,plain", {"num.standby.replicas": 1}),
    "life-late": _played("life-late", "kv,window,table"),
    "life-idle": _played("life-idle", "kv,empty,window"),
    "life-fifo": _played("life-late", "kv,plain,window", {"live.fifo": 1}),
    "life-third": _played("life", "kv,third"),
    "scale-third": _scale("kv,third", 1),
    "life-broker-assigns": _played(
        "life", "kv,window,table", BROKER_ASSIGNS, since="4.2.0", broker_since="4.2.0"
    ),
    "clean-starts": _played("clean-starts", "kv,plain,window"),
    "crash-loop": _played("crash-loop", "kv,plain,window", POISON, **EXPOSED),
    "replaced-threads": _played(
        "replaced-threads", "kv,plain,window", {**POISON, "live.replace.threads": 1}, since="2.8.0", **EXPOSED
    ),
    "killed-closing": _played("killed-closing", "kv,plain,window", **EXPOSED),
    "rolling-busy": _played("rolling-busy", "kv,window,plain", {"num.standby.replicas": 1}, **AT_RISK),
    "neighbours": _played("neighbours", "kv,window"),
    "long-tail": _played("long-tail", "kv,plain"),
    "committed-crash": _played("committed-crash", "plain,versioned", None, (EOS,), since="3.5.0"),
    "slow-disk": _played(
        "slow-disk", "", {"state.cleanup.delay.ms": 5000}, affected=CLEANS_EARLY, allow=("premature-cleanup",)
    ),
    "k20685": _played("uncommitted-crash", "", LONG_COMMIT, (EOS,), **KEPT),
    "k20685-upgraded": _upgraded(
        "3.9.2", lambda _plan: True, ("stale-eos-checkpoint", "unopenable-task", "overlaid-store"), UNCOMMITTED
    ),
    "upgraded-crash": _upgraded(
        "4.2.2", or_transactional(), ("overlaid-store", "unopenable-task"), UNCOMMITTED
    ),
    "enabled-crash": _upgraded(
        "4.3.1", or_transactional(), ("unopenable-task", *UNCOMMITTED[:2]), ("unopenable-task",)
    ),
    "k20685-window": _played(
        "uncommitted-crash", "kv,plain,window,session", LONG_COMMIT, (EOS,), **KEPT
    ),
    "k10362": _played(
        "suspended-crash", "", {**LONG_COMMIT, "upgrade.from": "2.3"}, (EOS,), since="2.4.0",
        **KEPT | {"affected": releases(("2.6.0", "2.6.2"))},
    ),
    "k16017": _played(
        "close-after-corruption", "", None, (EOS,), find=("unrestored-store",),
        affected=releases(("2.6.0", "2.7.0"), ("2.8.2", "3.0.0"), ("3.0.1", "3.5.3"), ("3.6.0", "3.6.2")),
    ),
    "d13": _played(
        "close-after-corruption-of-a-table", "table", None, (EOS,), find=("unrestored-store",), since="3.8.0",
        affected=releases(("3.8.0", "4.4.0")),
    ),
    "torn-cleanup": _torn("torn-cleanup", "kv,plain", None),
    "torn-cleaner": _torn("torn-cleaner", "", {"state.cleanup.delay.ms": 5000}, "orphaned-task"),
    "k20805": _played(
        "early-cleaner", "", {"state.cleanup.delay.ms": 15_000}, affected=CLEANS_EARLY, find=("premature-cleanup",)
    ),
    "k20663": _played(
        "segments-crash", "kv,window", None, (ALOS,), partitions=1, affected=releases(("4.3.0", "4.3.1")),
        find=("stale-segment-offset",), allow=("unopenable-task",),
    ),
    "lost-segment": _lost_segment("lost-segment", "window", (ALOS,)),
    "lost-segment-session": _lost_segment("lost-segment", "session", (ALOS,)),
    "lost-segment-join": _lost_segment("lost-segment", "join", (ALOS,)),
    "lost-segment-wiped": _lost_segment("lost-segment", "window", (EOS,), or_transactional()),
    "lost-segment-close": _lost_segment("killed-between-segments", "window", BOTH),
    "lost-segment-close-session": _lost_segment("killed-between-segments", "session", BOTH),
    "lost-segment-close-join": _lost_segment("killed-between-segments", "inner", BOTH),
    "versioned-crash": _played("versioned-crash", "kv,versioned", None, (EOS,), partitions=1, since="3.7.0"),
    "paused-restoring": _played("paused-restoring", "kv,plain", since="3.3.0"),
    "rolling-kills": _played("rolling-kills", "kv,window", partitions=6, since="3.0.0"),
    "reset": _truncated("reset"),
    "changelog-lost": _truncated("changelog-lost"),
    "dirty-close": _played(
        "dirty-close", "", LONG_COMMIT, (EOS,), affected=but_transactional(("3.8.0", "")),
        find=("false-clean-store", *UNCOMMITTED), allow=("stale-eos-checkpoint",),
    ),
    "corrupt-kill": _played(
        "corrupt-kill", "", {"commit.interval.ms": 4000}, (EOS,), affected=or_transactional(("3.8.0", "4.4.0")),
        find=("interrupted-wipe", "skipped-eos-wipe"), allow=("stale-eos-checkpoint", "false-clean-store"),
        since="2.6.0",
    ),
    "k7672": _played(
        "unrestored", "", {"commit.interval.ms": 500, "state.cleanup.delay.ms": 4000},
        affected=releases(("2.0.1", "2.2.0")), find=("unrestored-store",), allow=("carried-checkpoint",),
    ),
}  # fmt: skip


VARIANTS: tuple[tuple[str, str, Mapping[str, object], str, str], ...] = (
    ("life-upgrading", "life", UPGRADING, "4.3.0", ""),
    ("scale-upgrading", "scale-standby", UPGRADING, "4.3.0", ""),
    ("busy-crash-upgrading", "busy-crash", UPGRADING, "4.3.0", ""),
    ("fenced-upgrading", "fenced", UPGRADING, "4.3.0", ""),
    ("life-one-log", "life-late", {"live.one.log": 1}, "", ""),
    ("life-rolling-log", "life-late", {"live.rolling.log": 1}, "", ""),
    ("scale-rolling-log", "scale-standby", {"live.rolling.log": 1}, "", ""),
    ("fenced-rolling-log", "fenced", {"live.rolling.log": 1}, "", ""),
    ("life-small-manifest", "life-late", {"live.small.manifest": 1}, "", ""),
    ("scale-small-manifest", "scale-standby", {"live.small.manifest": 1}, "", ""),
    ("life-blobs", "life-late", {"live.blobs": 1}, "3.2.0", ""),
    ("life-log-elsewhere", "life-late", {"live.log.dir": 1}, "", ""),
    ("compacted-log-elsewhere", "compacted", {"live.log.dir": 1}, "", ""),
    ("static", "scale-standby", {"group.instance.id": EACH_POD}, "2.4.0", ""),
    ("scale-broker-assigns", "scale", BROKER_ASSIGNS, "4.2.0", "4.2.0"),
    ("fenced-broker-assigns", "fenced", BROKER_ASSIGNS, "4.2.0", "4.2.0"),
)
"""Name, of which scenario, settings beside its own; oldest release of Kafka Streams and of the broker, if another."""


def _variant(base: Scenario, settings: Mapping[str, object], since: str, broker_since: str) -> Scenario:
    plan = {**base.plan, "settings": {**base.plan.get("settings", {}), **settings}}
    return replace(base, plan=plan, since=since or base.since, broker_since=broker_since or base.broker_since)


SCENARIOS |= {
    name: _variant(SCENARIOS[of], settings, since, broker) for name, of, settings, since, broker in VARIANTS
}

ALSO_TRANSACTIONAL = (
    "life", "scale", "scale-standby", "busy-crash", "fenced", "standby-crash", "stall", "crash-restoring",
    "downgrade", "clean-starts", "killed-closing", "versioned-crash", "k20685", "k20685-upgraded",
    "upgraded-crash", "enabled-crash", "lost-segment", "lost-segment-wiped", "lost-segment-close", "dirty-close",
    "corrupt-kill",
)  # fmt: skip
"""Scenarios that are also played with transactional stores: damage that they make or spare, and benign lives."""

SCENARIOS |= {f"{name}-txn": transactional(SCENARIOS[name]) for name in ALSO_TRANSACTIONAL}
SCENARIOS["upgrade-txn"] = transactional(SCENARIOS["upgrade"], "4.2.2")
SCENARIOS["enabled-crash-same-txn"] = replace(
    SCENARIOS["enabled-crash-txn"],
    plan={**SCENARIOS["enabled-crash-txn"].plan, "before": TRANSACTIONAL_SINCE},
)
SCENARIOS |= PLANTED
