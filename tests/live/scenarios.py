"""The catalogue of scenarios: how each is run, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.live import bugs, lives, mishaps, operations, segments
from tests.live.plan import ALOS, EACH_POD, EOS, TRANSACTIONAL_SINCE
from tests.live.scenario import (
    BOTH,
    Affected,
    Scenario,
    but_transactional,
    exposed,
    or_transactional,
    releases,
    transactional,
)
from tests.live.stage import Stage

LONG_COMMIT = {"commit.interval.ms": 60_000, "producer.transaction.timeout.ms": 120_000}
UPGRADING = {"upgrade.from": "4.2"}
"""In the middle of a rolling upgrade: from 4.3 on every close then writes the old `.checkpoint`, too."""
BROKER_ASSIGNS = {"group.protocol": "streams", "session.timeout.ms": None, "heartbeat.interval.ms": None}
"""The broker assigns tasks (KIP-1071); its own settings tell sessions and heartbeats."""
COMPACTING = {
    "topic.segment.ms": 500,
    "topic.min.cleanable.dirty.ratio": 0.01,
    "topic.delete.retention.ms": 100,
}


CLEANS_EARLY = releases(("4.3.0", "4.4.0"))
"""KAFKA-20805."""


def _scale(
    stores: str,
    settings: Mapping[str, object] | None = None,
    since: str = "2.0.0",
    broker_since: str = "3.9.1",
) -> Scenario:
    """A pod joins and leaves, with a short cleanup delay; 4.3.0 and 4.3.1 clean early (KAFKA-20805)."""
    return Scenario(
        lives.scale,
        plan={"stores": stores, "settings": {"state.cleanup.delay.ms": 6000, **(settings or {})}},
        affected=CLEANS_EARLY,
        allow=("premature-cleanup",),
        since=since,
        broker_since=broker_since,
    )


def _lost_segment(
    play: Callable[[Stage], None], store: str, guarantees: tuple[str, ...], since: str = "4.2.0"
) -> Scenario:
    """A store of segments is killed and started again; from 4.3.0 on it goes on from one segment's offset."""
    return Scenario(
        play,
        guarantees,
        plan={"stores": f"kv,{store}", "partitions": 1},
        affected=releases(("4.3.0", "")),
        find=("lost-segment",),
        severity="critical",
        allow=("stale-segment-offset", "unopenable-task"),
        since=since,
    )


def _upgraded(before: str, affected: Affected, severity: str = "", allow: tuple[str, ...] = ()) -> Scenario:
    """An older release is killed with flushed records that are not committed; the next start is of the plan's own."""
    return Scenario(
        bugs.upgraded_crash,
        (EOS,),
        plan={"settings": LONG_COMMIT, "before": before},
        affected=affected,
        find=("skipped-eos-wipe", "interrupted-wipe", "data-beyond-changelog"),
        severity=severity,
        allow=allow,
        since=TRANSACTIONAL_SINCE,
    )


SCENARIOS: dict[str, Scenario] = {
    "life": Scenario(lives.life, plan={"stores": "all"}),
    "life-big": Scenario(
        lives.life,
        plan={
            "stores": "kv,window",
            "settings": {"live.write.buffer": 16_777_216, "commit.interval.ms": 100},
        },
    ),
    "life-slow-commit": Scenario(
        lives.life_uncommitted,
        (ALOS,),
        plan={"stores": "kv,window", "settings": {"commit.interval.ms": 30_000}},
    ),
    "scale": _scale("kv,window,memory"),
    "scale-standby": _scale("kv,window,memory", {"num.standby.replicas": 1}),
    "life-odd": Scenario(lives.life, plan={"stores": "odd", "settings": {"live.universal": 1}}),
    "scale-odd": _scale("odd", {"num.standby.replicas": 1}),
    "busy-crash-odd": Scenario(
        lives.busy_crash,
        plan={"stores": "odd"},
        affected=exposed,
        allow=("skipped-eos-wipe", "stale-eos-checkpoint"),
    ),
    "life-unlogged": Scenario(lives.life_unlogged, plan={"stores": "unlogged"}),
    "life-late-odd": Scenario(lives.life_late, plan={"stores": "odd"}),
    "upgrade-odd": Scenario(operations.upgrade, plan={"stores": "odd"}),
    "fenced-odd": Scenario(lives.fenced, plan={"stores": "odd"}),
    "life-upgrading": Scenario(lives.life, plan={"stores": "all", "settings": UPGRADING}, since="4.3.0"),
    "scale-upgrading": _scale("kv,window,memory", {"num.standby.replicas": 1, **UPGRADING}, since="4.3.0"),
    "busy-crash-upgrading": Scenario(lives.busy_crash, plan={"settings": UPGRADING}, since="4.3.0"),
    "fenced-upgrading": Scenario(
        lives.fenced, plan={"stores": "kv,window,table", "settings": UPGRADING}, since="4.3.0"
    ),
    "threads": Scenario(
        lives.threads,
        plan={"stores": "kv,window", "partitions": 4, "settings": {"num.stream.threads": 2}},
        since="2.8.0",
    ),
    "fenced": Scenario(lives.fenced, plan={"stores": "kv,window,table"}),
    "busy-crash": Scenario(
        lives.busy_crash, affected=exposed, allow=("skipped-eos-wipe", "stale-eos-checkpoint")
    ),
    "crash-restoring": Scenario(
        lives.crash_restoring,
        affected=exposed,
        allow=("stale-eos-checkpoint",),
        plan={"stores": "kv,plain"},
    ),
    "close-restoring": Scenario(
        lives.close_restoring,
        affected=exposed,
        allow=("stale-eos-checkpoint",),
        plan={"stores": "kv,plain"},
    ),
    "new-store": Scenario(lives.new_store),
    "upgrade": Scenario(operations.upgrade, plan={"stores": "kv,plain,window,session,table"}),
    "downgrade": Scenario(
        operations.downgrade, plan={"stores": "kv,plain,window,session,table"}, since=TRANSACTIONAL_SINCE
    ),
    "stall": Scenario(lives.stall, plan={"settings": lives.STALL}),
    "compacted": Scenario(
        lives.compacted,
        plan={
            "stores": "kv,plain,table",
            "settings": COMPACTING,
        },
    ),
    "standby-crash": Scenario(
        lives.standby_crash,
        plan={"stores": "kv,window,plain", "settings": {"num.standby.replicas": 1}},
    ),
    "life-late": Scenario(lives.life_late, plan={"stores": "kv,window,table"}),
    "life-one-log": Scenario(
        lives.life_late, plan={"stores": "kv,window,table", "settings": {"live.one.log": 1}}
    ),
    "life-rolling-log": Scenario(
        lives.life_late, plan={"stores": "kv,window,table", "settings": {"live.rolling.log": 1}}
    ),
    "scale-rolling-log": _scale("kv,window,memory", {"num.standby.replicas": 1, "live.rolling.log": 1}),
    "fenced-rolling-log": Scenario(
        lives.fenced, plan={"stores": "kv,window,table", "settings": {"live.rolling.log": 1}}
    ),
    "life-small-manifest": Scenario(
        lives.life_late, plan={"stores": "kv,window,table", "settings": {"live.small.manifest": 1}}
    ),
    "scale-small-manifest": _scale("kv,window,memory", {"num.standby.replicas": 1, "live.small.manifest": 1}),
    "life-blobs": Scenario(
        lives.life_late, plan={"stores": "kv,window,table", "settings": {"live.blobs": 1}}, since="3.2.0"
    ),
    "life-log-elsewhere": Scenario(
        lives.life_late, plan={"stores": "kv,window,table", "settings": {"live.log.dir": 1}}
    ),
    "compacted-log-elsewhere": Scenario(
        lives.compacted, plan={"stores": "kv,plain,table", "settings": {**COMPACTING, "live.log.dir": 1}}
    ),
    "life-idle": Scenario(operations.life_idle, plan={"stores": "kv,empty,window"}),
    "life-fifo": Scenario(lives.life_late, plan={"stores": "kv,plain,window", "settings": {"live.fifo": 1}}),
    "life-third": Scenario(lives.life, plan={"stores": "kv,third"}),
    "scale-third": _scale("kv,third", {"num.standby.replicas": 1}),
    "static": _scale(
        "kv,window,memory", {"num.standby.replicas": 1, "group.instance.id": EACH_POD}, since="2.4.0"
    ),
    "life-broker-assigns": Scenario(
        lives.life,
        plan={"stores": "kv,window,table", "settings": BROKER_ASSIGNS},
        since="4.2.0",
        broker_since="4.2.0",
    ),
    "scale-broker-assigns": _scale("kv,window,memory", BROKER_ASSIGNS, since="4.2.0", broker_since="4.2.0"),
    "fenced-broker-assigns": Scenario(
        lives.fenced,
        plan={"stores": "kv,window,table", "settings": BROKER_ASSIGNS},
        since="4.2.0",
        broker_since="4.2.0",
    ),
    "clean-starts": Scenario(operations.clean_starts, plan={"stores": "kv,plain,window"}),
    "crash-loop": Scenario(
        operations.crash_loop,
        affected=exposed,
        allow=("skipped-eos-wipe", "stale-eos-checkpoint"),
        plan={"stores": "kv,plain,window", "settings": {"live.poison": 1}},
    ),
    "replaced-threads": Scenario(
        operations.replaced_threads,
        affected=exposed,
        allow=("skipped-eos-wipe", "stale-eos-checkpoint"),
        plan={"stores": "kv,plain,window", "settings": {"live.poison": 1, "live.replace.threads": 1}},
        since="2.8.0",
    ),
    "killed-closing": Scenario(
        operations.killed_closing,
        affected=exposed,
        allow=("skipped-eos-wipe", "stale-eos-checkpoint"),
        plan={"stores": "kv,plain,window"},
    ),
    "rolling-busy": Scenario(
        operations.rolling_busy,
        affected=exposed,
        allow=("stale-eos-checkpoint",),
        plan={"stores": "kv,window,plain", "settings": {"num.standby.replicas": 1}},
    ),
    "neighbours": Scenario(operations.neighbours, plan={"stores": "kv,window"}),
    "long-tail": Scenario(lives.long_tail, plan={"stores": "kv,plain"}),
    "committed-crash": Scenario(
        lives.committed_crash, (EOS,), plan={"stores": "plain,versioned"}, since="3.5.0"
    ),
    "slow-disk": Scenario(
        lives.slow_disk,
        plan={"settings": {"state.cleanup.delay.ms": 5000}},
        affected=CLEANS_EARLY,
        allow=("premature-cleanup",),
    ),
    "k20685": Scenario(
        bugs.uncommitted_crash,
        (EOS,),
        plan={"settings": LONG_COMMIT},
        affected=exposed,
        find=("skipped-eos-wipe",),
        allow=("stale-eos-checkpoint",),
    ),
    "k20685-upgraded": _upgraded(
        "3.9.2", lambda _plan: True, allow=("stale-eos-checkpoint", "unopenable-task", "overlaid-store")
    ),
    "upgraded-crash": _upgraded("4.2.2", or_transactional(), allow=("overlaid-store", "unopenable-task")),
    "enabled-crash": Scenario(
        bugs.upgraded_crash,
        (EOS,),
        plan={"settings": LONG_COMMIT, "before": "4.3.1"},
        affected=or_transactional(),
        find=("unopenable-task",),
        allow=("unopenable-task", "skipped-eos-wipe", "interrupted-wipe"),
        since=TRANSACTIONAL_SINCE,
    ),
    "k20685-window": Scenario(
        bugs.uncommitted_crash,
        (EOS,),
        plan={"settings": LONG_COMMIT, "stores": "kv,plain,window,session"},
        affected=exposed,
        find=("skipped-eos-wipe",),
        allow=("stale-eos-checkpoint",),
    ),
    "k10362": Scenario(
        bugs.suspended_crash,
        (EOS,),
        plan={"settings": {**LONG_COMMIT, "upgrade.from": "2.3"}},
        affected=releases(("2.6.0", "2.6.2")),
        find=("skipped-eos-wipe",),
        allow=("stale-eos-checkpoint",),
        since="2.4.0",
    ),
    "k16017": Scenario(
        bugs.close_after_corruption,
        (EOS,),
        affected=releases(("2.6.0", "3.5.3"), ("3.6.0", "3.6.2")),
        find=("unrestored-store",),
    ),
    "d13": Scenario(
        bugs.close_after_corruption_of_a_table,
        (EOS,),
        plan={"stores": "table"},
        affected=releases(("3.8.0", "4.4.0")),
        find=("unrestored-store",),
        since="3.8.0",
    ),
    "torn-cleanup": Scenario(
        bugs.torn_cleanup,
        plan={"stores": "kv,plain"},
        affected=releases(("2.0.0", "4.3.0")),
        find=("resurrected-checkpoint", "torn-store"),
        always=("torn-store",),
        allow=("unrestored-store",),
    ),
    "torn-cleaner": Scenario(
        bugs.torn_cleaner,
        plan={"settings": {"state.cleanup.delay.ms": 5000}},
        affected=releases(("2.0.0", "4.3.0")),
        find=("resurrected-checkpoint", "torn-store"),
        always=("torn-store",),
        allow=("unrestored-store", "orphaned-task"),
    ),
    "k20805": Scenario(
        bugs.early_cleaner,
        plan={"settings": {"state.cleanup.delay.ms": 15_000}},
        affected=CLEANS_EARLY,
        find=("premature-cleanup",),
    ),
    "k20663": Scenario(
        bugs.segments_crash,
        (ALOS,),
        plan={"stores": "kv,window", "partitions": 1},
        affected=releases(("4.3.0", "4.3.1")),
        find=("stale-segment-offset",),
        allow=("unopenable-task",),
    ),
    "lost-segment": _lost_segment(segments.lost_segment, "window", (ALOS,)),
    "lost-segment-session": _lost_segment(segments.lost_segment, "session", (ALOS,)),
    "lost-segment-join": _lost_segment(segments.lost_segment, "join", (ALOS,)),
    "lost-segment-wiped": Scenario(
        segments.lost_segment,
        (EOS,),
        plan={"stores": "kv,window", "partitions": 1},
        affected=or_transactional(),
        find=("lost-segment",),
        severity="critical",
        allow=("stale-segment-offset", "unopenable-task"),
        since="4.2.0",
    ),
    "lost-segment-close": _lost_segment(segments.killed_between_segments, "window", BOTH),
    "lost-segment-close-session": _lost_segment(segments.killed_between_segments, "session", BOTH),
    "lost-segment-close-join": _lost_segment(segments.killed_between_segments, "inner", BOTH),
    "versioned-crash": Scenario(
        mishaps.versioned_crash, (EOS,), plan={"stores": "kv,versioned", "partitions": 1}, since="3.7.0"
    ),
    "paused-restoring": Scenario(mishaps.paused_restoring, plan={"stores": "kv,plain"}, since="3.3.0"),
    "rolling-kills": Scenario(
        mishaps.rolling_kills, plan={"stores": "kv,window", "partitions": 6}, since="3.0.0"
    ),
    "reset": Scenario(
        mishaps.reset_without_cleanup,
        (ALOS,),
        plan={"stores": "kv,plain"},
        affected=lambda _plan: True,
        find=("changelog-truncated",),
    ),
    "changelog-lost": Scenario(
        mishaps.changelog_lost,
        (ALOS,),
        plan={"stores": "kv,plain"},
        affected=lambda _plan: True,
        find=("changelog-truncated",),
    ),
    "dirty-close": Scenario(
        bugs.dirty_close,
        (EOS,),
        plan={"settings": LONG_COMMIT},
        affected=but_transactional(("3.8.0", "")),
        find=("false-clean-store", "skipped-eos-wipe", "interrupted-wipe", "data-beyond-changelog"),
        allow=("stale-eos-checkpoint",),
    ),
    "corrupt-kill": Scenario(
        bugs.corrupt_kill,
        (EOS,),
        plan={"settings": {"commit.interval.ms": 4000}},
        affected=or_transactional(("3.8.0", "4.4.0")),
        find=("interrupted-wipe", "skipped-eos-wipe"),
        allow=("stale-eos-checkpoint", "false-clean-store"),
        since="2.6.0",
    ),
    "k7672": Scenario(
        bugs.unrestored,
        plan={"settings": {"commit.interval.ms": 500, "state.cleanup.delay.ms": 4000}},
        affected=releases(("2.0.1", "2.2.0")),
        find=("unrestored-store",),
        allow=("carried-checkpoint",),
    ),
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
