"""Where a store is by now whose agent has ended: replaced on its pod, or on another pod that got its volume.

An agent closes what it found once the store's IDENTITY is gone from disk. One that begins anew without a baseline knows
nothing of it, and so does the one on another pod: then what they show decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agent.contract.events import Severity, Status
from spark_rollup.fleet.application import SKEW_US, Pods, Rule
from spark_rollup.fleet.clones import STORE
from spark_rollup.fleet.pods import GONE_US, has_ended, is_silent, renewed
from spark_rollup.fleet.rows import Said, Sighting
from spark_rollup.fleet.thin import OfApplication

Copy = tuple[str, str]
"""Task and pod."""


def followed(
    said: Sequence[Said], given: OfApplication, pods: Pods, as_of_us: int, rules: Iterable[Rule]
) -> list[Said]:
    """Close what was replaced since, and say what moved to another pod of that pod.

    What a rule asks about is said of both: it looks at what the first one did. Without sightings, as where only the
    tasks in question are wanted, all stays.
    """
    if not given.sightings:
        return list(said)
    began, told = renewed(pods), {(x.finding_id, x.pod) for x in said}
    asks = {detector for rule in rules for detector in rule.meta.asks}
    shown: dict[Copy, list[Sighting]] = defaultdict(list)
    for x in given.sightings:
        if x.what == STORE:
            shown[x.task_id or "", x.pod].append(x)
    named = _named(given)
    at_work = {pod for (_, pod), at_us in named.items() if at_us >= began.get(pod, at_us + 1)}

    def one(x: Said) -> Iterator[Said]:
        copy, pod = (x.task_id or "", x.pod), pods.get(x.pod)
        since_us = began.get(x.pod, 0)
        if x.status != Status.OPEN.value or x.severity == Severity.INFO.value or not x.task_id or pod is None:
            yield x
        elif x.heard_us < since_us and not (pod.heard and x.finding_id in pod.heard.open_ids):
            # of an agent that names no task at all it is not known that it looks at the same directory
            is_named = named.get(copy, 0) >= since_us or x.pod not in at_work
            gone = not is_named or _is_replaced(x, shown[copy], since_us)
            yield _over(x, since_us) if gone else x
        elif pod.heard and (has_ended(pod.heard, as_of_us) or is_silent(pod, as_of_us)):
            for moved in _moved(x, shown, pod.heard.last_us, told):
                yield from (x, moved) if moved.pod != x.pod and x.detector in asks else (moved,)
        else:
            yield x

    return [y for x in said for y in one(x)]


def _named(given: OfApplication) -> Mapping[Copy, int]:
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
    now = {y.key for y in shown if y.to_us >= since_us and x.store in (None, y.store)}
    return x.identity is not None and bool(now) and x.identity not in now


def _over(x: Said, at_us: int) -> Said:
    return x._replace(status=Status.RESOLVED.value, resolved_at_us=at_us, observed_at_us=at_us)


def _moved(
    x: Said, shown: Mapping[Copy, Sequence[Sighting]], last_us: int, told: set[tuple[str, str]]
) -> Iterator[Said]:
    """Follow a store to the pod that shows it since the last word of its own; there its agent knows best, if it does.

    Two pods that show it at one time have copies.
    """
    heirs: dict[str, list[Sighting]] = defaultdict(list)
    for (task, pod), own in shown.items():
        if task == x.task_id and pod != x.pod:
            heirs[pod] += [y for y in own if y.key == x.identity]
    since = {
        pod: max(y.to_us for y in own)
        for pod, own in heirs.items()
        if own and min(y.from_us for y in own) > last_us - SKEW_US
    }
    if not since:
        yield x
        return
    heir = max(since, key=lambda pod: (since[pod], pod))
    if (x.finding_id, heir) in told:
        return
    until_us = since[heir] + GONE_US
    if _is_replaced(x, shown[x.task_id or "", heir], until_us):
        yield _over(x, until_us)
        return
    yield x._replace(pod=heir)
