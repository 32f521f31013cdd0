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
from tests.lab.written import Play

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
KEPT: dict[str, Any] = {**EXPOSED, "find": ("skipped-eos-wipe",), "allow": ("stale-eos-checkpoint",)}
CLEANS_EARLY = releases(("4.3.0", "4.4.0"))
"""KAFKA-20805."""


def _scale(stores: str, settings: Mapping[str, object] | None = None) -> Scenario:
    """A pod joins and leaves, with a short cleanup delay; 4.3.0 and 4.3.1 clean early (KAFKA-20805)."""
    return Scenario(
        PLAYS["scale"],
        plan={"stores": stores, "settings": {"state.cleanup.delay.ms": 6000, **(settings or {})}},
        affected=CLEANS_EARLY,
        allow=("premature-cleanup",),
    )


def _lost_segment(play: Play, store: str, guarantees: tuple[str, ...]) -> Scenario:
    """A store of segments is killed and started again; from 4.3.0 on it goes on from one segment's offset."""
    return Scenario(
        play,
        guarantees,
        plan={"stores": f"kv,{store}", "partitions": 1},
        affected=releases(("4.3.0", "")),
        find=("lost-segment",),
        severity="critical",
        allow=("stale-segment-offset", "unopenable-task"),
        since="4.2.0",
    )


def _upgraded(before: str, affected: Affected, allow: tuple[str, ...] = ()) -> Scenario:
    """An older release is killed with flushed records that are not committed; the next start is of the plan's own."""
    return Scenario(
        PLAYS["upgraded-crash"],
        (EOS,),
        plan={"settings": LONG_COMMIT, "before": before},
        affected=affected,
        find=("skipped-eos-wipe", "interrupted-wipe", "data-beyond-changelog"),
        allow=allow,
        since=TRANSACTIONAL_SINCE,
    )


SCENARIOS: dict[str, Scenario] = {
    "life": Scenario(PLAYS["life"], plan={"stores": "all"}),
    "life-big": Scenario(
        PLAYS["life"],
        plan={
            "stores": "kv,window",
            "settings": {"live.write.buffer": 16_777_216, "commit.interval.ms": 100},
        },
    ),
    "life-slow-commit": Scenario(
        PLAYS["life-uncommitted"],
        (ALOS,),
        plan={"stores": "kv,window", "settings": {"commit.interval.ms": 30_000}},
    ),
    "scale": _scale("kv,window,memory"),
    "scale-standby": _scale("kv,window,memory", {"num.standby.replicas": 1}),
    "life-odd": Scenario(PLAYS["life"], plan={"stores": "odd", "settings": {"live.universal": 1}}),
    "scale-odd": _scale("odd", {"num.standby.replicas": 1}),
    "busy-crash-odd": Scenario(
        PLAYS["busy-crash"],
        plan={"stores": "odd"},
        **EXPOSED,
    ),
    "life-unlogged": Scenario(PLAYS["life-unlogged"], plan={"stores": "unlogged"}),
    "life-late-odd": Scenario(PLAYS["life-late"], plan={"stores": "odd"}),
    "upgrade-odd": Scenario(PLAYS["upgrade"], plan={"stores": "odd"}),
    "fenced-odd": Scenario(PLAYS["fenced"], plan={"stores": "odd"}),
    "threads": Scenario(
        PLAYS["threads"],
        plan={"stores": "kv,window", "partitions": 4, "settings": {"num.stream.threads": 2}},
        since="2.8.0",
    ),
    "fenced": Scenario(PLAYS["fenced"], plan={"stores": "kv,window,table"}),
    "busy-crash": Scenario(PLAYS["busy-crash"], **EXPOSED),
    "crash-restoring": Scenario(
        PLAYS["crash-restoring"],
        affected=exposed,
        allow=("stale-eos-checkpoint",),
        plan={"stores": "kv,plain"},
    ),
    "close-restoring": Scenario(
        PLAYS["close-restoring"],
        affected=exposed,
        allow=("stale-eos-checkpoint",),
        plan={"stores": "kv,plain"},
    ),
    "new-store": Scenario(PLAYS["new-store"]),
    "upgrade": Scenario(PLAYS["upgrade"], plan={"stores": "kv,plain,window,session,table"}),
    "downgrade": Scenario(
        PLAYS["downgrade"], plan={"stores": "kv,plain,window,session,table"}, since=TRANSACTIONAL_SINCE
    ),
    "stall": Scenario(PLAYS["stall"], plan={"settings": STALL}),
    "compacted": Scenario(
        PLAYS["compacted"],
        plan={
            "stores": "kv,plain,table",
            "settings": COMPACTING,
        },
    ),
    "standby-crash": Scenario(
        PLAYS["standby-crash"],
        plan={"stores": "kv,window,plain", "settings": {"num.standby.replicas": 1}},
    ),
    "life-late": Scenario(PLAYS["life-late"], plan={"stores": "kv,window,table"}),
    "life-idle": Scenario(PLAYS["life-idle"], plan={"stores": "kv,empty,window"}),
    "life-fifo": Scenario(
        PLAYS["life-late"], plan={"stores": "kv,plain,window", "settings": {"live.fifo": 1}}
    ),
    "life-third": Scenario(PLAYS["life"], plan={"stores": "kv,third"}),
    "scale-third": _scale("kv,third", {"num.standby.replicas": 1}),
    "life-broker-assigns": Scenario(
        PLAYS["life"],
        plan={"stores": "kv,window,table", "settings": BROKER_ASSIGNS},
        since="4.2.0",
        broker_since="4.2.0",
    ),
    "clean-starts": Scenario(PLAYS["clean-starts"], plan={"stores": "kv,plain,window"}),
    "crash-loop": Scenario(
        PLAYS["crash-loop"],
        **EXPOSED,
        plan={"stores": "kv,plain,window", "settings": {"live.poison": 1}},
    ),
    "replaced-threads": Scenario(
        PLAYS["replaced-threads"],
        **EXPOSED,
        plan={"stores": "kv,plain,window", "settings": {"live.poison": 1, "live.replace.threads": 1}},
        since="2.8.0",
    ),
    "killed-closing": Scenario(
        PLAYS["killed-closing"],
        **EXPOSED,
        plan={"stores": "kv,plain,window"},
    ),
    "rolling-busy": Scenario(
        PLAYS["rolling-busy"],
        affected=exposed,
        allow=("stale-eos-checkpoint",),
        plan={"stores": "kv,window,plain", "settings": {"num.standby.replicas": 1}},
    ),
    "neighbours": Scenario(PLAYS["neighbours"], plan={"stores": "kv,window"}),
    "long-tail": Scenario(PLAYS["long-tail"], plan={"stores": "kv,plain"}),
    "committed-crash": Scenario(
        PLAYS["committed-crash"], (EOS,), plan={"stores": "plain,versioned"}, since="3.5.0"
    ),
    "slow-disk": Scenario(
        PLAYS["slow-disk"],
        plan={"settings": {"state.cleanup.delay.ms": 5000}},
        affected=CLEANS_EARLY,
        allow=("premature-cleanup",),
    ),
    "k20685": Scenario(
        PLAYS["uncommitted-crash"],
        (EOS,),
        plan={"settings": LONG_COMMIT},
        **KEPT,
    ),
    "k20685-upgraded": _upgraded(
        "3.9.2", lambda _plan: True, allow=("stale-eos-checkpoint", "unopenable-task", "overlaid-store")
    ),
    "upgraded-crash": _upgraded("4.2.2", or_transactional(), allow=("overlaid-store", "unopenable-task")),
    "enabled-crash": Scenario(
        PLAYS["upgraded-crash"],
        (EOS,),
        plan={"settings": LONG_COMMIT, "before": "4.3.1"},
        affected=or_transactional(),
        find=("unopenable-task",),
        allow=("unopenable-task", "skipped-eos-wipe", "interrupted-wipe"),
        since=TRANSACTIONAL_SINCE,
    ),
    "k20685-window": Scenario(
        PLAYS["uncommitted-crash"],
        (EOS,),
        plan={"settings": LONG_COMMIT, "stores": "kv,plain,window,session"},
        **KEPT,
    ),
    "k10362": Scenario(
        PLAYS["suspended-crash"],
        (EOS,),
        plan={"settings": {**LONG_COMMIT, "upgrade.from": "2.3"}},
        affected=releases(("2.6.0", "2.6.2")),
        find=("skipped-eos-wipe",),
        allow=("stale-eos-checkpoint",),
        since="2.4.0",
    ),
    "k16017": Scenario(
        PLAYS["close-after-corruption"],
        (EOS,),
        affected=releases(("2.6.0", "3.5.3"), ("3.6.0", "3.6.2")),
        find=("unrestored-store",),
    ),
    "d13": Scenario(
        PLAYS["close-after-corruption-of-a-table"],
        (EOS,),
        plan={"stores": "table"},
        affected=releases(("3.8.0", "4.4.0")),
        find=("unrestored-store",),
        since="3.8.0",
    ),
    "torn-cleanup": Scenario(
        PLAYS["torn-cleanup"],
        plan={"stores": "kv,plain"},
        affected=releases(("2.0.0", "4.3.0")),
        find=("resurrected-checkpoint", "torn-store"),
        always=("torn-store",),
        allow=("unrestored-store",),
    ),
    "torn-cleaner": Scenario(
        PLAYS["torn-cleaner"],
        plan={"settings": {"state.cleanup.delay.ms": 5000}},
        affected=releases(("2.0.0", "4.3.0")),
        find=("resurrected-checkpoint", "torn-store"),
        always=("torn-store",),
        allow=("unrestored-store", "orphaned-task"),
    ),
    "k20805": Scenario(
        PLAYS["early-cleaner"],
        plan={"settings": {"state.cleanup.delay.ms": 15_000}},
        affected=CLEANS_EARLY,
        find=("premature-cleanup",),
    ),
    "k20663": Scenario(
        PLAYS["segments-crash"],
        (ALOS,),
        plan={"stores": "kv,window", "partitions": 1},
        affected=releases(("4.3.0", "4.3.1")),
        find=("stale-segment-offset",),
        allow=("unopenable-task",),
    ),
    "lost-segment": _lost_segment(PLAYS["lost-segment"], "window", (ALOS,)),
    "lost-segment-session": _lost_segment(PLAYS["lost-segment"], "session", (ALOS,)),
    "lost-segment-join": _lost_segment(PLAYS["lost-segment"], "join", (ALOS,)),
    "lost-segment-wiped": Scenario(
        PLAYS["lost-segment"],
        (EOS,),
        plan={"stores": "kv,window", "partitions": 1},
        affected=or_transactional(),
        find=("lost-segment",),
        severity="critical",
        allow=("stale-segment-offset", "unopenable-task"),
        since="4.2.0",
    ),
    "lost-segment-close": _lost_segment(PLAYS["killed-between-segments"], "window", BOTH),
    "lost-segment-close-session": _lost_segment(PLAYS["killed-between-segments"], "session", BOTH),
    "lost-segment-close-join": _lost_segment(PLAYS["killed-between-segments"], "inner", BOTH),
    "versioned-crash": Scenario(
        PLAYS["versioned-crash"], (EOS,), plan={"stores": "kv,versioned", "partitions": 1}, since="3.7.0"
    ),
    "paused-restoring": Scenario(PLAYS["paused-restoring"], plan={"stores": "kv,plain"}, since="3.3.0"),
    "rolling-kills": Scenario(
        PLAYS["rolling-kills"], plan={"stores": "kv,window", "partitions": 6}, since="3.0.0"
    ),
    "reset": Scenario(
        PLAYS["reset"],
        (ALOS,),
        plan={"stores": "kv,plain"},
        affected=lambda _plan: True,
        find=("changelog-truncated",),
    ),
    "changelog-lost": Scenario(
        PLAYS["changelog-lost"],
        (ALOS,),
        plan={"stores": "kv,plain"},
        affected=lambda _plan: True,
        find=("changelog-truncated",),
    ),
    "dirty-close": Scenario(
        PLAYS["dirty-close"],
        (EOS,),
        plan={"settings": LONG_COMMIT},
        affected=but_transactional(("3.8.0", "")),
        find=("false-clean-store", "skipped-eos-wipe", "interrupted-wipe", "data-beyond-changelog"),
        allow=("stale-eos-checkpoint",),
    ),
    "corrupt-kill": Scenario(
        PLAYS["corrupt-kill"],
        (EOS,),
        plan={"settings": {"commit.interval.ms": 4000}},
        affected=or_transactional(("3.8.0", "4.4.0")),
        find=("interrupted-wipe", "skipped-eos-wipe"),
        allow=("stale-eos-checkpoint", "false-clean-store"),
        since="2.6.0",
    ),
    "k7672": Scenario(
        PLAYS["unrestored"],
        plan={"settings": {"commit.interval.ms": 500, "state.cleanup.delay.ms": 4000}},
        affected=releases(("2.0.1", "2.2.0")),
        find=("unrestored-store",),
        allow=("carried-checkpoint",),
    ),
}


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
