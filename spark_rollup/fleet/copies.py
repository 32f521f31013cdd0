"""Which copies of each task are held at the end of the input, and in what state they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent.contract.events import Change, Level, Severity, Status
from spark_rollup.fleet.alone import is_refuted, wrong_copies
from spark_rollup.fleet.application import SKEW_US, Application, Task
from spark_rollup.fleet.events import SLOT_US
from spark_rollup.fleet.pods import is_silent

LAG_RECORDS = 20_000
"""A copy this many records behind is not recent: acceptable.recovery.lag (10,000), and as many again that an active may
leave out of its checkpoint."""


DAMAGED, BEHIND = "(damaged)", "records behind"

_ENDS = (Change.TASK_DELETED.value, Change.STORE_DELETED.value, Change.STORE_CREATED.value)
"""Changes before which a store was another one."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """The last time at which a process of an application was seen alive, and who was alive then.

    The patience is the longest that a rebalance takes, and what two pods' clocks may differ by.
    """

    since_us: int  # when its first process began
    horizon_us: int  # the last sign of any
    spoken_us: int
    """Until then every pod of it has spoken that is not silent or at its end; the horizon at most."""
    patience_us: int  # see above
    alive: int  # number of pods
    restless: bool  # whether a process started within the patience
    leaving: bool  # whether the clocks decide if some pod was alive
    presumed: bool  # whether a process that holds nothing may have ended while its pod was not watched
    pods_seen: list[str]  # names of all pods that ever ran it


def horizon(app: Application) -> Horizon | None:
    """Find an application's horizon; None = no process of it was ever visible."""
    if not app.lives or app.settings is None:
        return None
    patience_us = (app.settings.session_ms + app.settings.probing_ms) * 1_000 + SKEW_US
    horizon_us = max(x.to_us for x in app.lives)
    settled_us = horizon_us - patience_us
    # silent and ended pods are distinguished elsewhere
    spoken = [
        x.heard.last_us for x in app.home
        if x.heard and not x.heard.stopped and x.heard.last_us >= app.as_of_us - SLOT_US
    ]  # fmt: skip
    holders = {x.pod for task in app.tasks.values() for x in task.owners if x.lasting}
    return Horizon(
        since_us=min(x.from_us for x in app.lives),
        horizon_us=horizon_us,
        spoken_us=min([horizon_us, *spoken]),
        patience_us=patience_us,
        alive=len({x.pod for x in app.lives if x.to_us >= settled_us}),
        restless=max(x.from_us for x in app.lives) > settled_us,
        leaving=any(abs(x.to_us - settled_us) <= SKEW_US for x in app.lives),
        presumed=any(
            x.to_us >= settled_us
            and x.pod not in holders
            and app.was_unwatched(x.pod, None, x.from_us, x.to_us)
            for x in app.lives
        ),
        pods_seen=sorted({x.pod for x in app.lives}),
    )


@dataclass(frozen=True, slots=True)
class Held:
    """A copy that is held at the horizon, or was until a moment before it."""

    pod: str  # on which pod
    bytes: int | None  # its size; None = unknown
    damage: tuple[str, ...]  # ids of agents' open findings of damage that are not refuted
    ill: tuple[str, ...]  # why it is not healthy, such as that `verify` proved it wrong
    watched: bool  # whether its pod is heard, and counts it
    guessed: bool  # whether all that is said against it is that no offset of it is known

    @property
    def healthy(self) -> bool:
        """Whether nothing is said against it."""
        return not self.ill


def copies(app: Application, known: Horizon, until_us: int) -> Iterator[tuple[Task, list[Held]]]:
    """List the copies of each task that are held at the application's horizon, in order of their pods.

    A copy that was held less than the patience before `until_us` counts.
    """
    damaged = _damage(app)
    settled_us = until_us - known.patience_us
    for task in app.tasks.values():
        pods = {x.pod for x in task.owners if x.lasting or x.to_us >= settled_us}
        far = _furthest(task) if pods else {}
        found = []
        for pod in sorted(pods):
            size, lag, told = far.get(pod, (None, None, None))
            damage = damaged.get((task.id, pod))
            silent = pod in app.pods and is_silent(app.pods[pod], app.as_of_us)
            behind = lag is not None and lag > LAG_RECORDS
            unsaid = "" if (told or 0) > LAG_RECORDS else "no offset known: up to "
            ill = (
                DAMAGED if damage is not None else "",
                f"({unsaid}{lag} {BEHIND})" if behind else "",
                "(not heard)" if silent else "",
                "(may be gone)" if pod in app.miscounted else "",
            )
            watched = not silent and pod not in app.miscounted
            guessed = behind and bool(unsaid) and len(list(filter(None, ill))) == 1
            found.append(
                Held(pod, size, tuple(sorted(damage or ())), tuple(filter(None, ill)), watched, guessed)
            )
        if found:
            yield task, found


def _furthest(task: Task) -> dict[str, tuple[int | None, int | None, int | None]]:
    """Say per pod how many bytes a copy has, and its lag: that of the store that lags most behind its furthest copy.

    The third is the lag of the stores whose offset is known: of another one all may be missing, or an event. What was
    known of a store before it was deleted, or made, is of another one.
    """
    begun: dict[tuple[str, str | None], int] = defaultdict(int)
    for mark in task.marks:
        if mark.change in _ENDS and mark.segment is None:
            begun[mark.pod, mark.store] = max(begun[mark.pod, mark.store], mark.at_us)
    best: dict[str | None, int] = {}
    for x in task.latest:
        if x.offset is not None:
            best[x.store] = max(x.offset, best.get(x.store, x.offset))
    sizes: dict[str, list[int]] = defaultdict(list)
    lags: dict[str, list[int]] = defaultdict(list)
    told: dict[str, list[int]] = defaultdict(list)
    for x in task.latest:
        if x.bytes is not None:
            sizes[x.pod].append(x.bytes)
        if x.store in best:
            since_us = max(begun[x.pod, None], begun[x.pod, x.store])
            offset = x.offset if (x.offset_at_us or 0) >= since_us else None
            lags[x.pod].append(best[x.store] - max(offset or 0, 0))
            if offset is not None and offset >= 0:
                told[x.pod].append(lags[x.pod][-1])
    return {
        x.pod: (
            sum(sizes[x.pod]) if sizes[x.pod] else None,
            max(lags[x.pod], default=None),
            max(told[x.pod], default=None),
        )
        for x in task.latest
    }


def _damage(app: Application) -> Mapping[tuple[str, str], set[str]]:
    """List damaged copies, by task and pod, with the ids of open findings that say so."""
    found: dict[tuple[str, str], set[str]] = {}
    bad = (Level.DAMAGE.value, Status.OPEN.value, Severity.CRITICAL.value)
    for x in app.local:
        refuted = is_refuted(x.identity, x.pod, app.refuted.get(x.finding_id))
        if (x.level, x.status, x.severity) == bad and x.task_id is not None and not refuted:
            found.setdefault((x.task_id, x.pod), set()).add(x.finding_id)
    for copy in wrong_copies(app.proofs or ()):  # whatever agents say of it
        found.setdefault(copy, set())
    return found
