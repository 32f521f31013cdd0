"""What agents shipped, read back for tests."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.contract.codec import decode

Data = Mapping[str, Any]


def shipped_records(directory: Path) -> list[Data]:
    """Read every shipped record below a sink directory, in the order of each agent's sequence."""
    records: list[Data] = []
    for segment in directory.rglob("*.jsonl.gz"):
        with gzip.open(segment, "rb") as lines:
            records += [decode(line) for line in lines]
    return sorted(records, key=lambda data: (data["pod"], data["boot_id"], data["sequence"]))


def last_findings(records: list[Data]) -> list[Data]:
    """Keep the last word of each finding."""
    return list(
        {(data["pod"], data["finding_id"]): data for data in records if data["kind"] == "finding"}.values()
    )
