"""Why the agent was blind or slow: every cause with its remedy, as one table. Pure.

Metrics, the finding `auditor-blind` and its page take the causes from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from agent.inventory.model import BlindInterval


@dataclass(frozen=True, slots=True)
class BlindCause:
    """One cause."""

    slug: str  # as in metrics, records and findings
    what: str  # what happened
    remedy: str  # what a person can do about it
    # it holds until the agent finds it repaired; the others end with the rescan that repairs them
    lasts: bool = False
    hides: bool = True  # something may have come and gone unseen. If not, changes are only seen later.


CLOCK_DIFFERS = "clock-differs"

CAUSES: tuple[BlindCause, ...] = (
    BlindCause("queue-overflow", "more notifications came than the kernel's queue holds",
        "raise `fs.inotify.max_queued_events` on the node; give the agent CPU. It has read everything again"),
    BlindCause("mailbox-full", "the agent was too slow for a burst",
        "give the agent CPU. It has read everything again"),
    BlindCause("root-replaced", "the state directory was moved away, unmounted, mounted over or recreated",
        "nothing, if you did it; it has been read again"),
    BlindCause("root-missing", "the state directory is not there",
        "mount the application's volume, or correct the path", lasts=True),
    BlindCause("watch-refused", "the agent has no permission to read a directory, so it cannot watch it",
        "run the agent with the application's group (same `runAsGroup`); Kafka Streams makes directories 0750",
        lasts=True),
    BlindCause("watch-lost", "the watching thread died; it was restarted and everything was read again",
        "keep the agent's log and report it"),
    BlindCause("canary-missed", "a file that the agent moved in its own directory was not announced in time: the "
        "kernel, the reader or the mailbox has stalled; the reader was restarted",
        "give the agent CPU; if it comes back, keep the agent's log and report it"),
    BlindCause("missed", "a rescan found a change in a watched directory that no notification had announced",
        "find out whether the volume is shared with another machine; if it is, set `watch_mode=poll`"),
    BlindCause("agent-away", "the agent did not run; what changed meanwhile was found by comparison with its baseline",
        "nothing after a planned restart; otherwise search the agent's log and the pod's events for the reason"),
    BlindCause("baseline-lost", "the agent restarted and its baseline could not be used: it knows nothing of the "
        "time before",
        "check the agent's own volume; after a downgrade start the newer agent again, or ignore this"),
    BlindCause("agent-stalled", "the agent stalled (stopped, or without CPU), so no locks were checked",
        "give the agent CPU; check for SIGSTOP, a frozen cgroup or a suspended node"),
    BlindCause("clock-step", "the wall clock jumped: times before and after cannot be compared",
        "let the node's clock be slewed, not stepped"),
    BlindCause("denied", "the agent has no permission to read a file or directory",
        "run statewarden with the application's group (same `runAsGroup`); Kafka Streams makes directories 0750",
        lasts=True),
    BlindCause("unreadable", "a file or directory cannot be read: an error of the volume, or not the kind of file "
        "it should be",
        "check the volume and the path in the summary", lasts=True),
    BlindCause("too-large", "a directory or file is larger than what the agent reads",
        "check the path in the summary", lasts=True),
    BlindCause("store-damaged", "files of a store are damaged: RocksDB refuses them, too, or has lost the end of "
        "its manifest",
        "see `statewarden explain torn-store`", lasts=True),
    BlindCause("store-unread", "a part of a store could not be read: no permission, a compression or a format that "
        "the agent does not know",
        "check the permissions of the file in the summary; if they are right, report its format", lasts=True),
    BlindCause("store-being-read", "the manifest of a store is longer than one reading takes in, as after weeks "
        "without a restart",
        "nothing: the agent reads on, 1 MiB every two seconds; after that it reads only what is new", lasts=True),
    BlindCause("watch-limit", "no kernel watches are left: directories inside stores (or all) are polled instead",
        "raise the limit named in the summary on the node; the agent notices within a minute", lasts=True, hides=False),
    BlindCause("polling", "the volume does not announce every change, so the agent polls it",
        "nothing; keep state on a local volume if short-lived changes matter", lasts=True, hides=False),
    BlindCause(CLOCK_DIFFERS, "file times come from a file server whose clock differs from this node's, or was not "
        "compared with it",
        "keep the clocks of node and file server in step; a difference that was measured is taken off every file "
        "time", lasts=True, hides=False),
    BlindCause("self-limit", "the agent reached its ceiling of CPU or memory and does less",
        "raise `cpu_share` or `memory_mib`, or accept slower rescans and less store detail", lasts=True, hides=False),
)  # fmt: skip

BY_SLUG = {cause.slug: cause for cause in CAUSES}
HIDING = tuple(cause.slug for cause in CAUSES if cause.hides)
SLOWING = tuple(cause.slug for cause in CAUSES if not cause.hides)


def why_unread(interval: BlindInterval) -> str:
    """Say why a place cannot be read, without the place."""
    said = interval.detail.removeprefix(f"at {interval.place!r}").removeprefix("at 'the state directory'")
    if said.strip(", "):
        return said.strip(", ")
    return "permission denied" if interval.cause == "denied" else BY_SLUG[interval.cause].what


class Missed(StrEnum):
    """How a change came to be `missed`."""

    UNANNOUNCED = "unannounced"  # the directory had a watch
    UNWATCHED = "unwatched"  # it should have had one


class Step(IntEnum):
    """What the agent gives up at its ceilings (`self-limit`), one after the other; each step keeps those before it."""

    NONE = 0
    SLOWER_RESCAN = 1  # a quarter of the rescan's pace
    LONGER_BATCHES = 2  # the mailbox is emptied four times a second: more is coalesced
    LESS_STORE_DETAIL = 3  # counters of SST files are not read, caches are emptied
    SLOWEST_RESCAN = 4  # a sixteenth of the rescan's pace

    @property
    def slug(self) -> str:
        """Name in metrics."""
        return self.name.lower().replace("_", "-")
