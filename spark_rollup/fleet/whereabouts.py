"""Where a store is by now whose agent has ended: replaced on its pod, or on another pod that got its volume.

An agent closes what it found once the store's IDENTITY is gone from disk. One that begins anew without a baseline knows
nothing of it, and so does the one on another pod: then what they show decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from agent.contract.events import Change, Severity, Status
from agent.contract.whereabouts import heirs
from spark_rollup.fleet.application import Pods, Rule
from spark_rollup.fleet.clones import STORE
from spark_rollup.fleet.pods import DROPPED, EARLIER, GONE_US, LOST, has_ended, is_silent, renewed
from spark_rollup.fleet.rows import Said, Sighting
from spark_rollup.fleet.thin import OfApplication

Copy = tuple[str, str]
"""Task and pod."""

Store = tuple[str, str]
"""Task and IDENTITY."""


def followed(
    said: Sequence[Said], given: OfApplication, pods: Pods, as_of_us: int, rules: Iterable[Rule]
) -> list[Said]:
    """Close what was replaced since, and say what moved to another pod of that pod.

    What a rule asks about is said of both: it looks at what the first one did. Without sightings, as where only the
    tasks in question are wanted, all stays.
    """
    if not given.sightings:
        return list(said)
    began = {pod: x.boot_us for pod, x in renewed(pods).items()}
    told = {(x.finding_id, x.pod) for x in said}
    asks = {detector for rule in rules for detector in rule.meta.asks}
    shown, stores = defaultdict[Copy, list[Sighting]](list), defaultdict[Store, list[Sighting]](list)
    for x in given.sightings:
        if x.what == STORE and x.task_id is not None:
            shown[x.task_id, x.pod].append(x)
            stores[x.task_id, x.key].append(x)
    named, deleted = named_last(given), _deleted(given)
    at_work = {pod for (_, pod), at_us in named.items() if at_us >= began.get(pod, at_us + 1)}

    def one(x: Said) -> Iterable[Said]:
        task, pod, since_us = x.task_id, pods.get(x.pod), began.get(x.pod, 0)
        is_urgent = x.status == Status.OPEN.value and x.severity != Severity.INFO.value
        if not is_urgent or task is None or pod is None or pod.heard is None:
            return [x]
        last_us, is_gone = pod.heard.last_us, False
        if x.heard_us < since_us and x.finding_id not in pod.heard.open_ids:
            # of an agent that names no task at all it is not known that it looks at the same directory
            is_named = named.get((task, x.pod), 0) >= since_us or x.pod not in at_work
            here = shown[task, x.pod]
            last_us = max([x.heard_us, *(y.to_us for y in here if y.key == x.identity)])
            is_gone = not is_named or deleted[task, x.pod] > last_us or _is_replaced(x, here, since_us)
            if not is_gone:
                return [x]
        there = heirs(x.pod, stores[task, x.identity or ""], last_us)
        if not there:
            return [_over(x, since_us) if is_gone else x]
        moved = [
            x._replace(pod=new) for new, us in there
            if (x.finding_id, new) not in told and not _is_replaced(x, shown[task, new], us + GONE_US)
        ]  # fmt: skip
        if not (is_gone or has_ended(pod.heard, as_of_us) or is_silent(pod, as_of_us)):
            return [x, *moved]
        if moved:
            return [*([x] if x.detector in asks and not is_gone else []), *moved]
        is_told = any((x.finding_id, new) in told for new, _ in there)
        return [] if is_told else [_over(x, there[0][1] + GONE_US)]

    return [y for x in said for y in one(x)]


def _deleted(given: OfApplication) -> Mapping[Copy, int]:
    """Say when each copy was last seen to be deleted (microseconds)."""
    last: dict[Copy, int] = defaultdict(int)
    for x in given.marks:
        if x.change == Change.TASK_DELETED.value:
            last[x.task_id, x.pod] = max(last[x.task_id, x.pod], x.observed_at_us)
    return last


def gone(given: OfApplication, pods: Pods) -> Mapping[Copy, int]:
    """List copies that their pods' agents no longer name, and since when (microseconds).

    Of holds Spark gives only the first of an hour: of a task that shows no store a new boot alone tells that it went.
    """
    watched, found = renewed(pods), {}
    shows = {(x.task_id, x.pod) for x in given.sightings}
    for (task, pod), at_us in named_last(given).items():
        if pod in watched:
            since_us = watched[pod].whole_us if (task, pod) in shows else watched[pod].boot_us
            if at_us < since_us:
                found[task, pod] = since_us
    return found


def unnamed(given: OfApplication, pods: Pods) -> set[Copy]:
    """List copies that were not named since events of their pod were lost: they may have gone meanwhile."""
    lost: dict[str, int] = defaultdict(int)
    for gap in (x for pod in pods.values() for x in pod.gaps if x.cause in (LOST, DROPPED, EARLIER)):
        lost[gap.pod] = max(lost[gap.pod], gap.to_us)
    shows = {(x.task_id, x.pod) for x in given.sightings}
    return {x for x, at_us in named_last(given).items() if x in shows and at_us < lost[x[1]]}


def named_last(given: OfApplication) -> Mapping[Copy, int]:
    """Say when each copy was named last (microseconds)."""
    last: dict[Copy, int] = defaultdict(int)
    times = [(x.task_id, x.pod, x.to_us) for x in given.sightings if x.task_id is not None]
    times += [(x.task_id, x.pod, x.observed_at_us) for x in given.points]
    times += [(x.task_id, x.pod, x.observed_at_us) for x in given.marks]
    for task, pod, at_us in times:
        last[task, pod] = max(last[task, pod], at_us)
    return last


def _is_replaced(x: Said, shown: Sequence[Sighting], since_us: int) -> bool:
    """Return whether a pod shows other stores in the place of the one that was found, and no longer that one."""
    own = [y for y in shown if y.to_us >= since_us and x.store in (None, y.store)]
    others = [y for y in own if y.key != x.identity]
    if x.identity is None or len(others) == len(own):
        return x.identity is not None and bool(others)
    last_us = max(y.to_us for y in own if y.key == x.identity)
    return any(y.from_us > last_us and y.to_us > last_us + GONE_US for y in others)


def _over(x: Said, at_us: int) -> Said:
    return x._replace(status=Status.RESOLVED.value, resolved_at_us=at_us, observed_at_us=at_us)
