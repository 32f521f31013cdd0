"""A digest as the body of an event (`agent.contract.packed`). Pure."""

from __future__ import annotations

from agent.contract.buckets import DATABASE_FIELDS, FORMAT, Database, StoreDigest
from agent.contract.packed import DIGESTS, pack


def body_of(digest: StoreDigest) -> dict[str, object]:
    """Make the fields of an event of kind `digest`, without those that every event of this agent carries.

    Raises:
        OverflowError: a bucket has too many entries to be packed.
    """
    row = {"format": FORMAT} | {x.name: getattr(digest, x.name) for x in DIGESTS if x.name != "format"}
    row["databases"] = [_database(one) for one in digest.databases]
    return {
        "application_id": digest.application_id,
        "task_id": digest.task_id,
        "store": digest.store,
        "digests": [row],
    }


def _database(one: Database) -> dict[str, object]:
    said = {x.name: getattr(one, x.name) for x in DATABASE_FIELDS if x.name != "buckets"}
    return said | {"packed": pack(one.buckets)}
