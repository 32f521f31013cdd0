"""`diff`: compare two state directories."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from agent.cli.compare import Copy, Difference, Relation, compare
from agent.cli.offline import one_pass, require_state_directory
from agent.cli.streams import complain
from agent.cli.walking import walking
from agent.clock import SystemClock
from agent.config import Config
from agent.contract.codec import printable
from agent.contract.exit_codes import answer
from agent.engine.pipeline import Pipeline
from agent.engine.unread import how_much, unread, which
from agent.inventory.model import Inventory
from agent.layout.checkpoint import UNKNOWN_OFFSET


def diff(a: Path, b: Path, config: Config, *, as_json: bool) -> int:
    """Compare two state directories, or two snapshots of one.

    Raises:
        UsageError: one of them is not a readable state directory.
    """
    read = [read_directory(place, config).inventory for place in (a, b)]
    rows = list(compare(*read))
    for row in rows:
        sys.stdout.write(_json(row) if as_json else _line(row))
    if not rows:
        sys.stdout.write("neither has a store\n")
    is_part = [_complain(place, inventory) for place, inventory in zip((a, b), read, strict=True)]
    said = {row.relation for row in rows}
    undecided = any(is_part) or Relation.UNKNOWN in said
    return answer(found=bool(said - {Relation.SAME, Relation.UNKNOWN}), unread=undecided)


def _complain(directory: Path, inventory: Inventory) -> bool:
    """Say on standard error what of a directory could not be read; return whether there is anything."""
    places = unread(inventory)
    if places:
        complain(printable(f"{directory}: {how_much(inventory, places)}; {which(places)}"))
    return bool(places)


def read_directory(directory: Path, config: Config) -> Pipeline:
    """Read a state directory once.

    Raises:
        UsageError: it is not a readable state directory.
    """
    with walking(directory) as (disk, observer):
        require_state_directory(disk, directory)
        now_us = SystemClock().now_us()
        pipeline = one_pass(disk, config, now_us)
        pipeline.looker.observer = observer
        pipeline.scan(now_us)
        pipeline.confirm(now_us)
        pipeline.summarise(now_us)
    return pipeline


def _json(row: Difference) -> str:
    return (
        json.dumps(
            {
                "application_id": row.application,
                "task_id": row.task,
                "store": row.store,
                "relation": row.relation.value,
                "why": row.why,
                "a": _plain(row.a),
                "b": _plain(row.b),
            }
        )
        + "\n"
    )


def _plain(copy: Copy | None) -> dict[str, object] | None:
    if copy is None:
        return None
    return {**dataclasses.asdict(copy), "identities": sorted(copy.identities)}


def _line(row: Difference) -> str:
    place = printable(f"{row.application}/{row.task}/{row.store}")
    indent = " " * 11
    lines = (
        f"{row.relation.value:<11}{place}",
        f"{indent}A {_wording(row.a)}",
        f"{indent}B {_wording(row.b)}",
        indent + row.why,
    )
    return "\n".join(lines) + "\n"


def _wording(copy: Copy | None) -> str:
    if copy is None:
        return "-"
    entries = "?" if copy.entries_low is None else f"{copy.entries_low} to {copy.entries_high}"
    offset = "none" if copy.offset is None else "unknown" if copy.offset == UNKNOWN_OFFSET else copy.offset
    return f"offset {offset}, {copy.puts} puts, {entries} entries, {copy.size_bytes} bytes"
