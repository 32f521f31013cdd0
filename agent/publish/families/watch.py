"""Watching and reading: what was announced, what was missed, and how long the agent was blind."""

from __future__ import annotations

from agent.inventory.blind_causes import HIDING, SLOWING, Missed
from agent.inventory.disk import SEEN, Unseen
from agent.inventory.hints import LOSSES, PERIODIC
from agent.publish.metric import Metric, MetricKind, Stability, by, flags, one
from agent.watch.source import Cause

_G, _C = MetricKind.GAUGE, MetricKind.COUNTER
_RESCANS = tuple(dict.fromkeys((*(cause.value for cause in Cause), *sorted(LOSSES), PERIODIC)))

WATCH = (
    Metric(
        "statewarden_agent_watches", _G, "Directories with a kernel watch.", lambda s: one(s.watch.watches)
    ),
    Metric(
        "statewarden_agent_watch_events_total",
        _C,
        "Notifications read from the kernel.",
        lambda s: one(s.watch.events),
    ),
    Metric(
        "statewarden_agent_queue_overflows_total",
        _C,
        "Times that a notification queue was full and notifications were lost.",
        lambda s: one(s.watch.queue_overflows),
    ),
    Metric(
        "statewarden_agent_rescans_total",
        _C,
        "Rescans: walks over whole directories, by cause.",
        lambda s: by(s.watch.rescans),
        labels=("cause",),
        initial={"cause": _RESCANS},
    ),
    Metric(
        "statewarden_agent_missed_changes_total",
        _C,
        "Changes that only a walk found although notifications should have announced them.",
        lambda s: by(s.watch.missed_changes),
        labels=("cause",),
        initial={"cause": tuple(cause.value for cause in Missed)},
    ),
    Metric(
        "statewarden_agent_blind_seconds_total",
        _C,
        "Time during which changes could go unseen, summed over places; finished intervals and the running ones.",
        lambda s: by(s.watch.blind_s),
        unit="seconds",
        labels=("cause",),
        initial={"cause": HIDING},
    ),
    Metric(
        "statewarden_agent_blind",
        _G,
        "Whether changes can go unseen right now.",
        lambda s: flags(s.watch.blind_now),
        labels=("cause",),
        initial={"cause": HIDING},
    ),
    Metric(
        "statewarden_agent_slowed",
        _G,
        "Whether changes are seen later than they could be.",
        lambda s: flags(s.watch.slowed_now),
        labels=("cause",),
        initial={"cause": SLOWING},
    ),
    Metric(
        "statewarden_agent_watches_needed",
        _G,
        "Directories that are to be watched.",
        lambda s: one(s.watch.watches + s.watch.unwatched),
    ),
    Metric(
        "statewarden_agent_unwatched_directories",
        _G,
        "Directories that are to be watched and are only polled.",
        lambda s: one(s.watch.unwatched),
    ),
    Metric(
        "statewarden_agent_inotify_limit",
        _G,
        "Kernel limits on inotify, per user on the node; absent where the kernel does not say.",
        lambda s: by(s.watch.limits),
        labels=("kind",),
    ),
    Metric(
        "statewarden_agent_watch_restarts_total",
        _C,
        "Times that the watch was restarted.",
        lambda s: one(s.watch.restarts),
    ),
    Metric(
        "statewarden_agent_canary",
        _G,
        "Whether the agent's canary file proves that notifications arrive.",
        lambda s: one(s.watch.canary),
    ),
    Metric(
        "statewarden_agent_canaries_missed_total",
        _C,
        "Canaries that were not announced in time.",
        lambda s: one(s.watch.canaries_missed),
    ),
    Metric(
        "statewarden_agent_mailbox_waiting",
        _G,
        "Notifications that wait for the worker.",
        lambda s: one(s.watch.waiting),
    ),
    Metric(
        "statewarden_agent_mailbox_coalesced_total",
        _C,
        "Notifications that a newer one on the same path replaced.",
        lambda s: one(s.watch.coalesced),
    ),
    Metric(
        "statewarden_agent_mailbox_dropped_total",
        _C,
        "Notifications that found the mailbox full; a rescan replaces them.",
        lambda s: one(s.watch.dropped),
    ),
    Metric(
        "statewarden_agent_reconcile_entries_total",
        _C,
        "Entries that the background walk read.",
        lambda s: one(s.watch.reconcile_entries),
    ),
    Metric(
        "statewarden_agent_reconcile_round_seconds",
        _G,
        "How long the last whole round of that walk took; 0 before its end.",
        lambda s: one(s.watch.reconcile_round_s),
        unit="seconds",
    ),
    Metric(
        "statewarden_agent_clock_steps_total",
        _C,
        "Times that the wall clock was set while the agent ran.",
        lambda s: one(s.watch.clock_steps),
    ),
    Metric(
        "statewarden_agent_observations_total",
        _C,
        "Reads of files and directories, by outcome.",
        lambda s: by(s.observations),
        labels=("outcome",),
        initial={"outcome": (SEEN, *(unseen.value for unseen in Unseen))},
    ),
    Metric(
        "statewarden_agent_observation_delay_seconds",
        _G,
        "Time from the newest notification to the metrics that show its effect.",
        lambda s: one(s.last_delay_s),
        unit="seconds",
        stability=Stability.EXPERIMENTAL,
    ),
)
