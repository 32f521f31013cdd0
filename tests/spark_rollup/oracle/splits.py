"""The rule about two holders of one task in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.spark_rollup.oracle.facts import Hold, S, World
from tests.spark_rollup.oracle.verdicts import Said, said


def _pairs(world: World) -> Iterator[tuple[Hold, Hold, int, int]]:
    for a in world.owners:
        for b in world.owners:
            start, end = max(a.start, b.start), min(a.end, b.end)
            if a.task == b.task and a.pod != b.pod and end - start > world.session:
                yield a, b, start, end


_MOVES = {"store-flushed", "checkpoint-written", "store-opened", "store-created", "store-deleted"}


_Row = tuple[int, int | None, int | None, int | None]
"""When, offset, puts, and how many puts 10,000 records make at most."""


def _steps(world: World, task: str, pod: str) -> dict[str, list[_Row]]:
    """What shows how far each store of a copy is, in order."""
    rows: dict[str, list[_Row]] = defaultdict(list)
    for x in world.looks:
        if (x.task, x.pod) == (task, pod):
            rows[x.store].append((x.at, x.offset, x.puts, x.limit))
    for e in world.marks:
        if e["change"] == "store-flushed" and (e["task_id"], e["pod"]) == (task, pod):
            rows[e["store"]].append((e["observed_at_us"], None, e.get("puts"), None))
    return {store: sorted(found, key=lambda x: (x[0], x[2] or 0)) for store, found in rows.items()}


def _is_beyond(own: list[_Row], new: list[_Row], slack: int) -> bool:
    """Tell whether one copy of a store went beyond another, and moved."""
    offset, puts = _most([row[1] for row in own]), _most([row[2] for row in own])
    reached, limit = _most([row[1] for row in new]), _most([row[3] for row in new])
    some = [row[2] for row in new if row[2] is not None]
    beyond = None if offset is None or reached is None else reached > offset + slack
    if beyond is None and puts is not None and some and (limit is not None or not slack):
        beyond = some[-1] - some[0] > puts + (limit if slack and limit is not None else 0)
    offsets = {(row[1], -1 if row[2] is None else row[2]) for row in new if row[1] is not None}
    return bool(beyond) and len(offsets) + len(set(some)) > 2


def _most(values: list[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def split(world: World) -> Iterator[Said]:
    """A frozen holder beside one that went beyond it."""
    standbys = world.number("num_standby_replicas")
    slack = 0 if world.release and world.release < (2, 6) else 10_000
    for frozen, other, start, end in _pairs(world):
        through = {h.pod for h in world.owners if h.task == frozen.task and h.start <= start and h.end >= end}
        if len(through) <= 1 + (standbys or 0):
            continue
        moved = [
            e["observed_at_us"] for e in world.marks
            if e["change"] in _MOVES and (e["task_id"], e["pod"]) == (frozen.task, frozen.pod)
            and start + 2 * S < e["observed_at_us"] < end
        ]  # fmt: skip
        still = min(moved, default=end)
        if still - start <= world.session:
            continue
        mine, theirs = _steps(world, frozen.task, frozen.pod), _steps(world, other.task, other.pod)
        if not any(
            _is_beyond(
                [row for row in mine[store] if row[0] <= still],
                [row for row in theirs[store] if start <= row[0] <= still],
                slack,
            )
            for store in mine.keys() & theirs.keys()
        ):
            continue
        blind = any(world.unwatched(pod, start, still) for pod in (frozen.pod, other.pod))
        lasting = frozen.lasting and other.lasting
        fenced = not lasting and (world.settings.get("processing_guarantee") or "").startswith("exactly_once")
        unsure = standbys is None or still - start <= world.session + 10 * S
        confidence = "unknown" if blind else "suspected" if unsure else "confirmed"
        yield said(
            "split-owner", frozen.task, frozen.pod, "info" if fenced or blind else "warning", confidence,
            "open" if lasting else "resolved",
        )  # fmt: skip


ORACLES = {"split-owner": split}
