"""May this pod be restarted, by the events themselves: what an audit would say of them now."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from agent.contract.events import Severity
from agent.contract.exit_codes import Exit
from spark_rollup import audit
from spark_rollup.config import AuditOptions
from spark_rollup.correlate import RULES
from spark_rollup.facts import settings
from spark_rollup.judging.job import judged
from spark_rollup.report.restart_answer import Question, answer
from spark_rollup.spark.rows import rows_of

Row = Mapping[str, object]


def safe_to_restart(spark: SparkSession, options: AuditOptions, question: Question) -> tuple[list[str], Exit]:
    """Answer for one pod task by task, or for all pods in one table.

    Returns:
        Lines, the age of what they rest on first; and the exit code.

    Raises:
        UsageError: no such pod in the input, or several of its name.
    """
    events, loaded, as_of_us = audit.prepare(spark, options)
    facts = audit.gather(events, options, as_of_us, loaded.carried, loaded.ahead)
    # what no rule of these says can never be critical
    rules = [rule for rule in RULES if rule.meta.severity is Severity.CRITICAL]
    found = judged(facts, rules, audit.proofs_of(facts, options))
    lines, code = answer(
        rows_of(found.restarts.orderBy("namespace", "pod", "application_id", "task_id")),
        rows_of(found.known_pods.orderBy("namespace", "pod")),
        as_of_us,
        question,
        rows_of(settings.disabled(facts.settings).orderBy("detector", "namespace", "pod")),
        verified=options.verified is not None,
    )
    unused = settings.unused(facts.settings, options.overrides)
    return [*lines, unused] if unused else lines, code
