"""Events of other versions of the contract: those of a later minor one are read as far as they are known here.

Those of another major version wait in the quarantine for the upgrade that is asked for.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.codec import SCHEMA_VERSION
from agent.contract.events import SCHEMA_MAJOR, SCHEMA_MINOR

UNKNOWN_MAJOR = "unknown-major"
"""Reason for which the quarantine holds a line of another major version, or of none."""
NO_VERSION = "contract version none"
"""How its detail begins where the line names none."""

_SOURCE = r'"source" *: *"/statewarden/([^"]*)"'  # the envelope's; nothing is known of the rest


def minor_of(version: Column | str) -> Column:
    """Read the minor version of the contract; null if there is none."""
    text = F.col(version) if isinstance(version, str) else version
    return F.split_part(text, F.lit("."), F.lit(2)).try_cast("int")


def is_later(version: Column | str) -> Column:
    """Return whether a version of the contract is a later minor one than is known here; never null."""
    return F.coalesce(minor_of(version) > SCHEMA_MINOR, F.lit(False))


def latest_minor(version: str) -> Column:
    """Find the latest minor version that is not known here; null = there is none. An aggregate."""
    return F.max(F.when(is_later(version), minor_of(version)))


def announce(minor: int | None, done: str) -> None:
    """Ask for an upgrade on standard error if events are of a later minor version, and say what is done with them."""
    if minor is not None:
        print(
            f"statewarden-rollup: some events are of contract {SCHEMA_MAJOR}.{minor}, and this version knows "
            f"{SCHEMA_VERSION}: they are {done}, but what is new in them is not used: upgrade statewarden",
            file=sys.stderr,
        )


def announce_segments(events: DataFrame) -> None:
    """Say of segments that are read without bronze what `ingest` would have said of them.

    Input columns: schema_version.
    """
    row = events.agg(latest_minor("schema_version").alias("minor")).first()
    announce(row["minor"] if row else None, "read")


def of_another_major(quarantine: Sequence[Mapping[str, object]] | DataFrame) -> dict[str, int]:
    """Count lines of another major version by `namespace/pod`, as their envelopes name it; empty: not named.

    A line without any version is of somebody else.
    """
    if isinstance(quarantine, DataFrame):
        pod = F.regexp_extract("line", _SOURCE, 1).alias("pod")
        is_one = (F.col("reason") == UNKNOWN_MAJOR) & ~F.col("detail").startswith(NO_VERSION)
        return {
            str(row["pod"]): int(row["count"])
            for row in quarantine.where(is_one).groupBy(pod).count().collect()
        }
    lines = (
        str(row["line"])
        for row in quarantine
        if row["reason"] == UNKNOWN_MAJOR and not str(row["detail"]).startswith(NO_VERSION)
    )
    return dict(Counter(found[1] if (found := re.search(_SOURCE, line)) else "" for line in lines))
