"""Which tasks some rule needs every reading and every transition of; of all others a summary is enough."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from agent.contract.events import Change
from spark_rollup.fleet.meta import RuleMeta
from spark_rollup.fleet.rows import Hold, Mark, Said, Settings


def questioned(
    metas: Iterable[RuleMeta],
    local: Iterable[Said],
    holds: Iterable[Hold],
    marks: Iterable[Mark],
    settings: Settings | None,
) -> set[str]:
    """List the tasks of an application that are in question.

    Those with a finding that a rule asks about (`RuleMeta.asks`), those whose copy was deleted under an offset, and
    those that more pods hold than are promised.
    """
    detectors = {detector for meta in metas for detector in meta.asks}
    found = {x.task_id for x in local if x.task_id is not None and x.detector in detectors}
    found |= {
        x.task_id for x in marks if x.change == Change.TASK_DELETED.value and (x.offset_before or 0) > 0
    }
    if settings is not None:
        tasks: dict[str, list[Hold]] = defaultdict(list)
        for hold in holds:
            if not hold.cleaner:
                tasks[hold.task_id].append(hold)
        promised = 1 + (settings.num_standby_replicas or 0)
        session_us = settings.session_ms * 1_000
        found |= {task for task, own in tasks.items() if is_crowded(own, max(promised, 1), session_us)}
    return found


def is_crowded(holds: Sequence[Hold], promised: int, session_us: int) -> bool:
    """Return whether more pods than are promised hold a task at once, for longer than the session timeout."""
    through: Counter[str] = Counter()
    ends: list[tuple[int, str]] = []
    for hold in sorted(holds, key=lambda x: x.from_us):
        while ends and ends[0][0] - hold.from_us <= session_us:
            _, pod = heapq.heappop(ends)
            through[pod] -= 1
            if not through[pod]:
                del through[pod]
        if hold.to_us - hold.from_us > session_us:
            through[hold.pod] += 1
            heapq.heappush(ends, (hold.to_us, hold.pod))
        if len(through) > promised:
            return True
    return False
