"""The catalogue of scenarios: how each is run, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.live import bugs, lives, mishaps, operations, segments
from tests.live.plan import ALOS, EACH_POD, EOS, is_exposed, numbers
from tests.live.stage import Stage

MANY = "kv,plain,memory,window,session,table,global,repartition"
ODD = "kv,unlogged,join"
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
BOTH = (ALOS, EOS)


def _between(*ranges: tuple[str, str]) -> Callable[[str], bool]:
    """Tell whether a release is in one of some ranges, ends included."""
    return lambda release: any(numbers(low) <= numbers(release) <= numbers(high) for low, high in ranges)


def _never(_release: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Scenario:
    """One entry of the catalogue.

    Args of the dataclass:
        play: Plays it.
        guarantees: With which it is run.
        plan: Fields of `Plan` beside release and guarantee.
        affected: Tells whether a release must be found out; of the others the same life must stay quiet.
        find: Detectors of which the told agent must say one at warning or above on an affected release.
        severity: At which it must, if not any of those will do.
        allow: Detectors that may say so beside them, on an affected release.
        always: Detectors that may say so on every release: the hazard is there.
        since: Oldest release it can be played on.
        broker_since: Oldest release of the broker that it needs.
    """

    play: Callable[[Stage], None]
    guarantees: tuple[str, ...] = BOTH
    plan: Mapping[str, object] = field(default_factory=dict)
    affected: Callable[[str], bool] = _never
    find: tuple[str, ...] = ()
    severity: str = ""
    allow: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    since: str = "2.0.0"
    broker_since: str = "3.9.1"

    def must(self, release: str) -> tuple[str, ...]:
        """Give the detectors of which one must say it on a release; none: nothing is to be found there."""
        return self.find if self.affected(release) else ()


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
        affected=_between(("4.3.0", "4.3.1")),
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
        affected=_between(("4.3.0", "4.3.1")),
        find=("lost-segment",),
        severity="critical",
        allow=("stale-segment-offset", "unclean-store"),
        since=since,
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
        affected=is_exposed,
        allow=("skipped-eos-wipe", "stale-eos-checkpoint"),
    ),
    "life-unlogged": Scenario(lives.life_unlogged, plan={"stores": "unlogged"}),
    "life-late-odd": Scenario(lives.life_late, plan={"stores": "odd"}),
    "upgrade-odd": Scenario(lives.upgrade, plan={"stores": "odd"}),
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
        lives.busy_crash, affected=is_exposed, allow=("skipped-eos-wipe", "stale-eos-checkpoint")
    ),
    "crash-restoring": Scenario(
        lives.crash_restoring,
        affected=is_exposed,
        allow=("stale-eos-checkpoint",),
        plan={"stores": "kv,plain"},
    ),
    "close-restoring": Scenario(
        lives.close_restoring,
        affected=is_exposed,
        allow=("stale-eos-checkpoint",),
        plan={"stores": "kv,plain"},
    ),
    "new-store": Scenario(lives.new_store),
    "upgrade": Scenario(lives.upgrade, plan={"stores": "kv,plain,window,session,table"}),
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
        affected=is_exposed,
        always=("wipe-storm",),
        allow=("skipped-eos-wipe", "stale-eos-checkpoint"),
        plan={"stores": "kv,plain,window", "settings": {"live.poison": 1}},
    ),
    "replaced-threads": Scenario(
        operations.replaced_threads,
        affected=is_exposed,
        always=("wipe-storm",),
        allow=("skipped-eos-wipe", "stale-eos-checkpoint"),
        plan={"stores": "kv,plain,window", "settings": {"live.poison": 1, "live.replace.threads": 1}},
        since="2.8.0",
    ),
    "killed-closing": Scenario(
        operations.killed_closing,
        affected=is_exposed,
        allow=("skipped-eos-wipe", "stale-eos-checkpoint"),
        plan={"stores": "kv,plain,window"},
    ),
    "rolling-busy": Scenario(
        operations.rolling_busy,
        affected=is_exposed,
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
        affected=_between(("4.3.0", "4.3.1")),
        allow=("premature-cleanup",),
    ),
    "k20685": Scenario(
        bugs.uncommitted_crash,
        (EOS,),
        plan={"settings": LONG_COMMIT},
        affected=is_exposed,
        find=("skipped-eos-wipe",),
        allow=("stale-eos-checkpoint",),
    ),
    "k20685-window": Scenario(
        bugs.uncommitted_crash,
        (EOS,),
        plan={"settings": LONG_COMMIT, "stores": "kv,plain,window,session"},
        affected=is_exposed,
        find=("skipped-eos-wipe",),
        allow=("stale-eos-checkpoint",),
    ),
    "k10362": Scenario(
        bugs.suspended_crash,
        (EOS,),
        plan={"settings": {**LONG_COMMIT, "upgrade.from": "2.3"}},
        affected=_between(("2.6.0", "2.6.1")),
        find=("skipped-eos-wipe",),
        allow=("stale-eos-checkpoint",),
        since="2.4.0",
    ),
    "k16017": Scenario(
        bugs.close_after_corruption,
        (EOS,),
        affected=_between(("2.6.0", "3.5.2"), ("3.6.0", "3.6.1")),
        find=("unrestored-store",),
    ),
    "d13": Scenario(
        bugs.close_after_corruption_of_a_table,
        (EOS,),
        plan={"stores": "table"},
        affected=lambda release: numbers(release) >= (3, 8),
        find=("unrestored-store",),
        since="3.8.0",
    ),
    "torn-cleanup": Scenario(
        bugs.torn_cleanup,
        plan={"stores": "kv,plain"},
        affected=_between(("2.0.0", "4.2.9")),
        find=("resurrected-checkpoint", "torn-store"),
        always=("torn-store",),
        allow=("unrestored-store",),
    ),
    "torn-cleaner": Scenario(
        bugs.torn_cleaner,
        plan={"settings": {"state.cleanup.delay.ms": 5000}},
        affected=_between(("2.0.0", "4.2.9")),
        find=("resurrected-checkpoint", "torn-store"),
        always=("torn-store",),
        allow=("unrestored-store", "orphaned-task"),
    ),
    "k20805": Scenario(
        bugs.early_cleaner,
        plan={"settings": {"state.cleanup.delay.ms": 15_000}},
        affected=_between(("4.3.0", "4.3.1")),
        find=("premature-cleanup",),
    ),
    "k20663": Scenario(
        bugs.segments_crash,
        (ALOS,),
        plan={"stores": "kv,window", "partitions": 1},
        affected=_between(("4.3.0", "4.3.0")),
        find=("stale-segment-offset",),
        allow=("unclean-store",),
    ),
    "lost-segment": _lost_segment(segments.lost_segment, "window", (ALOS,)),
    "lost-segment-session": _lost_segment(segments.lost_segment, "session", (ALOS,)),
    "lost-segment-join": _lost_segment(segments.lost_segment, "join", (ALOS,)),
    "lost-segment-wiped": Scenario(
        segments.lost_segment, (EOS,), plan={"stores": "kv,window", "partitions": 1}, since="4.2.0"
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
        affected=lambda _release: True,
        find=("changelog-truncated",),
    ),
    "changelog-lost": Scenario(
        mishaps.changelog_lost,
        (ALOS,),
        plan={"stores": "kv,plain"},
        affected=lambda _release: True,
        find=("changelog-truncated",),
    ),
    "dirty-close": Scenario(
        bugs.dirty_close,
        (EOS,),
        plan={"settings": LONG_COMMIT},
        affected=_between(("3.8.0", "4.3.1")),
        find=("false-clean-store", "skipped-eos-wipe", "interrupted-wipe", "data-beyond-changelog"),
        allow=("stale-eos-checkpoint",),
    ),
    "corrupt-kill": Scenario(
        bugs.corrupt_kill,
        (EOS,),
        plan={"settings": {"commit.interval.ms": 4000}},
        affected=_between(("3.8.0", "4.3.1")),
        find=("interrupted-wipe", "skipped-eos-wipe"),
        allow=("stale-eos-checkpoint", "false-clean-store"),
        since="2.6.0",
    ),
    "k7672": Scenario(
        bugs.unrestored,
        plan={"settings": {"commit.interval.ms": 500, "state.cleanup.delay.ms": 4000}},
        affected=_between(("2.0.1", "2.1.1")),
        find=("unrestored-store",),
        allow=("carried-checkpoint",),
    ),
}


def stores_for(release: str) -> str:
    """Every usual kind of store that a release has."""
    return MANY + (",versioned" if numbers(release) >= (3, 5) else "")


def odd_stores_for(release: str) -> str:
    """Stores with a life of their own: without a changelog, of joins, held back in memory."""
    return ODD + (",foreign,suppress" if numbers(release) >= (2, 5) else "")


STORES_OF: dict[str, Callable[[str], str]] = {"all": stores_for, "odd": odd_stores_for}
"""Sets of stores that depend on the release, by the name that a plan gives them."""
