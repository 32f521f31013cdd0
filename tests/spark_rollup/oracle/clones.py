"""The two rules about cloned volumes in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product

from tests.spark_rollup.oracle.facts import S, World
from tests.spark_rollup.oracle.verdicts import Said, said

Seen = dict[tuple[str, str], list[int]]
"""When a thing was seen: by pod and boot of its agent, within which no volume comes or goes."""


def is_shared(finding: Mapping[str, object]) -> bool:
    """Two processes on one directory, as agents say it, older ones included."""
    of = finding["detector"]
    return of == "shared-state-dir" or (of == "setup" and finding.get("mechanism") == "shared-state")


def cloned(world: World) -> Iterator[Said]:
    """One process id or store identity on two pods at once."""
    seen: dict[tuple[str, ...], Seen] = defaultdict(lambda: defaultdict(list))
    for event in world.events:
        pod, at = (event["pod"], event["boot_id"]), event["observed_at_us"]
        if event.get("process_id"):
            seen["process", event["process_id"]][pod].append(at)
        if event["kind"] == "transition" and event.get("identity") and event.get("task_id"):
            seen["store", event["identity"], event["task_id"], str(event.get("store"))][pod].append(at)
        for row in event.get("stores") or ():
            if row.get("identity"):
                seen["store", row["identity"], event["task_id"], row["store"]][pod].append(at)
    both: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for by_boot in seen.values():
        for one in by_boot:
            for other in by_boot:
                mine, theirs = by_boot[one], by_boot[other]
                start, end = max(min(mine), min(theirs)), min(max(mine), max(theirs))
                if one[0] < other[0] and end - start > 10 * S:
                    both[one[0], other[0]].append((start, end))
    together = {pair for pair, end in _alive(world).items() if world.as_of - end[1] <= 180 * S}
    for (a, b), spans in both.items():
        if (a, b) in together:
            continue
        start, end = min(span[0] for span in spans), max(span[1] for span in spans)
        working = {h.pod for h in world.owners if h.pod in (a, b) and h.start <= end and h.end >= start}
        local = sorted(f["finding_id"] for f in world.local if is_shared(f) and f["pod"] in (a, b))
        yield said(
            "cloned-volume", None, a, "critical" if len(working) == 2 else "warning", "confirmed",
            "resolved" if world.as_of - end > 180 * S else "open", local,
        )  # fmt: skip


def _alive(world: World) -> dict[tuple[str, str], tuple[int, int]]:
    """When processes with one id lived on two pods."""
    seen: dict[str, Seen] = defaultdict(lambda: defaultdict(list))
    for event in world.events:
        if event.get("process_id"):
            seen[event["process_id"]][event["pod"], event["boot_id"]].append(event["observed_at_us"])
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for by_boot in seen.values():
        pairs = [(a, b) for a in by_boot for b in by_boot if a[0] < b[0]]
        for (one, other), (a, a_from, a_to), (b, b_from, b_to) in product(pairs, world.lives, world.lives):
            if (a, b) != (one[0], other[0]):
                continue
            mine, theirs = by_boot[one], by_boot[other]
            both = max(min(mine), min(theirs)), min(max(mine), max(theirs))
            start, end = max(both[0], a_from, b_from), min(both[1], a_to, b_to)
            if both[1] - both[0] > 10 * S and end - start > 10 * S:
                found[a, b].append((start, end))
    return {pair: (min(x[0] for x in spans), max(x[1] for x in spans)) for pair, spans in found.items()}


def cloned_processes(world: World) -> Iterator[Said]:
    """One process id alive on two pods at once."""
    for (a, b), (start, end) in _alive(world).items():
        working = {h.pod for h in world.owners if h.pod in (a, b) and h.start <= end and h.end >= start}
        loud = ("critical", "confirmed") if len(working) == 2 else ("warning", "suspected")
        local = sorted(f["finding_id"] for f in world.local if is_shared(f) and f["pod"] in (a, b))
        status = "resolved" if world.as_of - end > 180 * S else "open"
        yield said("cloned-process", None, a, *loud, status, local)


ORACLES = {"cloned-process": cloned_processes, "cloned-volume": cloned}
