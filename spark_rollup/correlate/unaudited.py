"""Pods and times that no agent watched: there "no finding" means "unknown", not "fine".

Signal: holes in an agent's sequence, blind intervals in its heartbeats, silence, an agent that did not run, a clock
    that is ahead of all others; heartbeats that count more open findings than are in the input.
Fires when: any such interval or count exists in the input; one finding per pod and cause.
Clears when: the interval is before the look-back; what is counted is in the input.
Stays quiet when: the last thing an agent said is that it stops, and nothing came after.
Blind spots: a pod without any agent is not known here at all.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from spark_rollup.columns import MICROS, clock, entry, numbered
from spark_rollup.facts.gaps import DROPPED, EARLIER, FAST, LOST, SILENT, STOPPED
from spark_rollup.facts.levels import has_ended
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding

META = RuleMeta(
    id="unaudited",
    title="Pods and times that no agent watched",
    level=Level.SELF,
    severity=Severity.WARNING,
    joined_by=(("next_action",),),  # it says what happened to the agent
    consequence="For these pods and times, no finding means unknown, not fine.",
    twin=Twin("agents that said that they stop", "benign-move-3.9.2"),
)

SHORT_US = 60 * MICROS
"""Up to this much unwatched time in all (microseconds) is worth a note, not a warning."""

MAX_INTERVALS = 20
"""How many intervals the evidence lists; the summary counts them all."""

MISSED = "missed-findings"
"""Cause of what is no interval: the agent counts open findings that are not in the input."""

_SENTENCES = {
    LOST: "events were lost on the way and no agent announced it",
    DROPPED: "the agent dropped events because its spool was full",
    EARLIER: "the input starts in the middle of the agent's stream",
    MISSED: "its agent counts open findings that are not in the input",
    SILENT: "the agent said nothing",
    STOPPED: "the agent was stopped",
    FAST: "its clock is ahead of all others, or all others fell silent at once; the audit ends where they do",
}

_ACTIONS = {
    LOST: "Find the missing segments (spool directory, sink, retention) and audit again: sending twice is harmless.",
    DROPPED: "Give the agent's spool more room, or find out why shipping was behind.",
    EARLIER: "Nothing, if the input was cut on purpose; else add the earlier segments.",
    SILENT: "Check the agent on that pod: does it run, does it ship? Then audit again.",
    STOPPED: "Nothing, if the agent was restarted on purpose; what changed meanwhile is unknown.",
    MISSED: "Read on that pod what is open: its page, or `statewarden scan`. Add the missing segments, or wait:"
    " an agent says again what is open at each start and every 6 hours.",
    FAST: "Set the clock of that pod's node (is NTP running there?). If its clock is right, check the other agents.",
}


def find(facts: Facts) -> DataFrame:
    """Group gaps per pod and cause, and add what agents count.

    Output columns: `FINDING`.
    """
    span = F.greatest(F.col("to_us") - F.col("from_us"), F.lit(0))
    missing = F.coalesce(numbered(", %d events missing", "missing"), F.lit(""))
    shown = entry(
        F.col("from_us"),
        F.concat(
            F.lit("no agent watched from "), clock("from_us"), F.lit(" to "), clock("to_us"), missing,
            F.coalesce(F.concat(F.lit(", task "), F.col("task_id")), F.lit("")),
        ),
        F.col("pod"),
    )  # fmt: skip
    groups = (
        facts.gaps.withColumn("entries", shown)
        .withColumn("span_us", span)
        .groupBy("namespace", "application_id", "pod", "cause")
        .agg(
            F.min("from_us").alias("opened_at_us"),
            F.count("*").alias("intervals"),
            F.sum("span_us").alias("unwatched_us"),
            F.sum("missing").alias("missing"),
            F.slice(F.array_sort(F.collect_list("entries")), 1, MAX_INTERVALS).alias("evidence"),
        )
        # the cause is part of the finding's identity
        .withColumn("identity", F.col("cause"))
    )
    return _findings(groups.unionByName(_missed(facts), allowMissingColumns=True))


def _missed(facts: Facts) -> DataFrame:
    """List pods whose agents count open findings that are not in the input: columns of the groups, number."""
    number = F.col("missed_criticals") + F.col("missed_warnings")
    ids = F.concat_ws(", ", F.slice("missed", 1, MAX_INTERVALS))
    counts = numbered(
        "of what the agent counts as open, %d critical and %d warnings are not in the input",
        "missed_criticals", "missed_warnings",
    )  # fmt: skip
    named = F.when(ids != "", F.concat(F.lit(": "), ids)).otherwise(F.lit(""))
    return facts.heard.where(number > 0).select(
        "namespace",
        F.lit(None).cast("string").alias("application_id"),
        "pod",
        F.lit(MISSED).alias("cause"),
        F.col("boot_us").alias("opened_at_us"),
        number.alias("number"),
        has_ended(facts.as_of_us).alias("over"),
        F.array(entry(F.col("level_us"), F.concat(counts, named), F.col("pod"))).alias("evidence"),
        F.lit(MISSED).alias("identity"),
    )


def _findings(groups: DataFrame) -> DataFrame:
    harmless = F.col("cause").isin(EARLIER, STOPPED)
    long = F.col("unwatched_us") > SHORT_US
    over = F.coalesce("over", F.lit(False))
    is_warning = ~harmless & ~over & (F.coalesce(long, F.lit(True)) | F.col("cause").isin(LOST, SILENT, FAST))
    sentence = F.coalesce(_lookup(_SENTENCES), F.concat(F.lit("the agent was blind: "), F.col("cause")))
    plural = F.when(F.col("intervals") == 1, F.lit("")).otherwise(F.lit("s"))
    unwatched_s = F.col("unwatched_us") / F.lit(float(MICROS))
    summary = F.concat(
        F.col("pod"),
        F.lit(": "),
        sentence,
        F.coalesce(
            numbered("; %d interval%s, %.0f s unwatched", "intervals", plural, unwatched_s),
            numbered(": %d", "number"),
        ),
        F.coalesce(numbered(", %d events missing", "missing"), F.lit("")),
    )
    fallback = F.lit(
        "Read the agent's log for the cause; a rescan has repaired its view, but not what passed unseen."
    )
    return finding(
        groups,
        META,
        {
            "opened_at_us": F.col("opened_at_us"),
            "confidence": F.when(F.col("cause") == FAST, F.lit(Confidence.SUSPECTED.value)).otherwise(
                F.lit(Confidence.CONFIRMED.value)
            ),
            "severity": F.when(is_warning, F.lit(Severity.WARNING.value)).otherwise(
                F.lit(Severity.INFO.value)
            ),
            "affected": F.lit("no"),
            "summary": summary,
            "evidence": F.col("evidence"),
            "next_action": F.coalesce(_lookup(_ACTIONS), fallback),
        },
    )


def _lookup(texts: dict[str, str]) -> Column:
    return F.try_element_at(
        F.create_map(*(F.lit(text) for pair in texts.items() for text in pair)), F.col("cause")
    )


RULE = Rule(META, find)
