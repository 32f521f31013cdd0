"""How much of everything the page shows: whatever an audit finds, the page stays below 15 MiB and opens in seconds.

What is left out is always counted, and where all of it is is said beside the count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from spark_rollup.report.page.data import SEVERITIES, WORDS, level
from spark_rollup.report.page.text import count

_MIB = 1 << 20

INCIDENTS = 2000
"""Incidents with a card, the worst first."""

CARDS_BYTES, EVIDENCE_BYTES = 5 * _MIB, 4 * _MIB
"""What cards may take, and what the evidence inside all of them may take."""

EVIDENCE_OF_ONE_BYTES = 128 << 10
FINDINGS_OF_ONE = 20
STEPS_OF_ONE = 40
"""Findings of one incident, and steps of one finding; the last steps are the ones that decided."""

NAMES_OF_ONE = 500
"""Tasks, pods and agents' incidents that one incident names; of more it gives the number."""

RESTARTS_BYTES, TIMELINES_BYTES, PODS_BYTES, INDEX_BYTES, AGENTS_BYTES = (
    _MIB * 3 // 2, _MIB * 5 // 4, _MIB, _MIB // 2, _MIB // 2,
)  # fmt: skip

OPEN_AT_ONCE = 25
"""So many blocks of one kind are shown at once, the others in folded pages of this size."""


def fitting(blocks: Iterable[str], limit_bytes: int) -> list[str]:
    """Take blocks from the front as long as all of them together fit; no further block is made."""
    taken, size = [], 0
    for block in blocks:
        size += len(block.encode())
        if size > limit_bytes:
            break
        taken.append(block)
    return taken


def by_severity(severities: Iterable[object]) -> str:
    """Count by severity: `3 critical, 12 warning, 1 remark`."""
    found = Counter(level(severity) for severity in severities)
    return ", ".join(
        count(found[x], WORDS[x]) if WORDS[x] == "remark" else f"{found[x]} {WORDS[x]}"
        for x in SEVERITIES
        if found[x]
    )


def paged(blocks: Sequence[str], noun: str, size: int = OPEN_AT_ONCE) -> list[str]:
    """Fold everything behind the first page, so that thousands of blocks open as fast as a few."""
    parts = list(blocks[:size])
    for start in range(size, len(blocks), size):
        some = blocks[start : start + size]
        head = f"{noun} {start + 1} to {start + len(some)} of {len(blocks)}"
        parts.append(f'<details class="page"><summary>{head}</summary>{"".join(some)}</details>')
    return parts
