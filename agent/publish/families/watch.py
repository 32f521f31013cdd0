"""Watching and reading: what was announced, what was missed, and how long the agent was blind."""

from __future__ import annotations

from agent.inventory.blind_causes import HIDING, SLOWING, Missed
from agent.inventory.disk import SEEN, Unseen
from agent.inventory.hints import LOSSES, PERIODIC
from agent.publish.metric import Metric, Stability, by, flags
from agent.watch.source import Cause

_RESCANS = tuple(dict.fromkeys((*(cause.value for cause in Cause), *sorted(LOSSES), PERIODIC)))

# fmt: off
WATCH = (
    Metric("statewarden_agent_watches", "Directories with a kernel watch.", lambda s: s.watch.watches),
    Metric("statewarden_agent_watch_events_total", "Notifications read from the kernel.", lambda s: s.watch.events),
    Metric("statewarden_agent_queue_overflows_total",
           "Times that a notification queue was full and notifications were lost.",
           lambda s: s.watch.queue_overflows),
    Metric("statewarden_agent_rescans_total", "Rescans: walks over whole directories, by cause.",
           lambda s: by(s.watch.rescans), labels=("cause",), initial={"cause": _RESCANS}),
    Metric("statewarden_agent_missed_changes_total",
           "Changes that only a walk found although notifications should have announced them.",
           lambda s: by(s.watch.missed_changes), labels=("cause",),
           initial={"cause": tuple(cause.value for cause in Missed)}),
    Metric("statewarden_agent_blind_seconds_total",
           "Time during which changes could go unseen, summed over places, running intervals included.",
           lambda s: by(s.watch.blind_s), labels=("cause",), initial={"cause": HIDING}),
    Metric("statewarden_agent_blind", "Whether changes can go unseen right now.", lambda s: flags(s.watch.blind_now),
           labels=("cause",), initial={"cause": HIDING}),
    Metric("statewarden_agent_slowed", "Whether changes are seen later than they could be.",
           lambda s: flags(s.watch.slowed_now), labels=("cause",), initial={"cause": SLOWING}),
    Metric("statewarden_agent_watches_needed", "Directories that are to be watched.",
           lambda s: s.watch.watches + s.watch.unwatched),
    Metric("statewarden_agent_unwatched_directories", "Directories that are to be watched and are only polled.",
           lambda s: s.watch.unwatched),
    Metric("statewarden_agent_inotify_limit",
           "Kernel limits on inotify, per user on the node; absent where the kernel does not say.",
           lambda s: by(s.watch.limits), labels=("kind",)),
    Metric("statewarden_agent_watch_restarts_total", "Times that the watch was restarted.",
           lambda s: s.watch.restarts),
    Metric("statewarden_agent_canary", "Whether the agent's canary file proves that notifications arrive.",
           lambda s: s.watch.canary),
    Metric("statewarden_agent_canaries_missed_total", "Canaries that were not announced in time.",
           lambda s: s.watch.canaries_missed),
    Metric("statewarden_agent_mailbox_waiting", "Notifications waiting for the worker.", lambda s: s.watch.waiting),
    Metric("statewarden_agent_mailbox_coalesced_total", "Notifications that a newer one on the same path replaced.",
           lambda s: s.watch.coalesced),
    Metric("statewarden_agent_mailbox_dropped_total",
           "Notifications that found the mailbox full; a rescan replaces them.", lambda s: s.watch.dropped),
    Metric("statewarden_agent_reconcile_entries_total", "Entries that the background walk read.",
           lambda s: s.watch.reconcile_entries),
    Metric("statewarden_agent_reconcile_round_seconds",
           "How long the last whole round of that walk took; 0 before its end.", lambda s: s.watch.reconcile_round_s),
    Metric("statewarden_agent_clock_steps_total", "Times that the wall clock was set while the agent ran.",
           lambda s: s.watch.clock_steps),
    Metric("statewarden_agent_observations_total", "Reads of files and directories, by outcome.",
           lambda s: by(s.observations), labels=("outcome",),
           initial={"outcome": (SEEN, *(unseen.value for unseen in Unseen))}),
    Metric("statewarden_agent_observation_delay_seconds",
           "Time from the newest notification to the metrics that show its effect.", lambda s: s.last_delay_s,
           stability=Stability.EXPERIMENTAL),
)
# fmt: on
