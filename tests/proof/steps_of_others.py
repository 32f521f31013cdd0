"""What other pods write to the changelog of the task meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proof.eras import Era
from tests.proof.life import (
    ABORTED,
    COMMITTED,
    FEW,
    MANY,
    NOBODY,
    STANDBY,
    Block,
    Life,
    Move,
    writes,
    written,
)

RECORDS = {"few": FEW, "many": MANY}


def other_pod_writes(era: Era, life: Life, most: int) -> Iterator[Move]:
    """Another pod owns the task and processes: the changelog grows."""
    if life.role not in (NOBODY, STANDBY) or writes(life) >= most:
        return
    for word, records in RECORDS.items():
        yield Move(f"another pod writes {word}", (), written(life, records, COMMITTED, marker=era.eos))
    if era.eos:
        yield Move("another pod's transaction is aborted", (), written(life, MANY, ABORTED, marker=True))


def other_pod_groups(era: Era, life: Life, most: int) -> Iterator[Move]:
    """Another pod's transaction holds more than was asked for at once, or one record each has its own."""
    if not era.eos or life.role not in (NOBODY, STANDBY) or writes(life) >= most:
        return
    for word, records in RECORDS.items():
        each = life._replace(log=(*life.log, Block(COMMITTED, records, 2)))
        yield Move(f"another pod writes {word}, record by record", (), each)
        for more, others in RECORDS.items() if writes(life) + 1 < most else ():
            both = written(written(life, records, COMMITTED), others, COMMITTED, marker=True)
            yield Move(f"another pod writes {word} and {more} in one transaction", (), both)
