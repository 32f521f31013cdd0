"""What every rule is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Affected, Confidence, Kind, Level, Severity, Status
from agent.contract.fields import fields_of
from spark_rollup.columns import is_notable

SAID = (
    "application_id", "task_id", "store", "observed_at_us", "boot_id", "sequence",
    *(row.name for row in fields_of(Kind.FINDING) if row.kinds and row.name != "finding_id"),
)  # fmt: skip
"""What is kept of an agent's finding: where, when, and all that only findings say."""


def last_local_findings(events: DataFrame) -> DataFrame:
    """Keep the last word about each agent finding, by time and sequence.

    A repetition is the same word: it was said when the agent said it first.

    Input columns: `EVENT_ROW`, one row per id.
    Output columns: the finding fields of the contract, `TASK`, pod, observed_at_us, heard_us, heard_boot and
        heard_sequence (of the event itself).
    Grain: one row per finding_id and pod.
    """
    order = F.struct("observed_at_us", "sequence")
    rows = events.where(is_notable() & (F.col("kind") == "finding")).groupBy("namespace", "pod", "finding_id")
    last = (
        rows.agg(F.max_by(F.struct(*SAID), order).alias("said"))
        .select("namespace", "pod", "finding_id", "said.*")
        .withColumnsRenamed({"boot_id": "heard_boot", "sequence": "heard_sequence"})
    )
    return last.withColumns(
        {
            "heard_us": F.col("observed_at_us"),
            "observed_at_us": F.coalesce("said_us", "observed_at_us"),
            **{name: _known(name, values, default) for name, (values, default) in _WORDS.items()},
        }
    )


_WORDS: Mapping[str, tuple[type[StrEnum], StrEnum]] = {
    "level": (Level, Level.EVENT),
    "severity": (Severity, Severity.WARNING),
    "confidence": (Confidence, Confidence.UNKNOWN),
    "status": (Status, Status.OPEN),
    "affected": (Affected, Affected.POSSIBLY),
}
"""What a word is taken for that this version does not know: a newer minor version of the contract may add some."""


def _known(name: str, values: type[StrEnum], default: StrEnum) -> Column:
    word = F.col(name)
    return F.when(word.isin([value.value for value in values]), word).otherwise(F.lit(default.value))
