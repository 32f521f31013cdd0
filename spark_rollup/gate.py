"""May this pod be restarted, by the events themselves: what an audit would say of them now."""

from __future__ import annotations

from pyspark.sql import SparkSession

from agent.contract.audited import gather
from agent.contract.events import Severity
from agent.contract.exit_codes import Exit
from agent.contract.names import not_here
from spark_rollup import audit
from spark_rollup.bronze.later import of_another_major
from spark_rollup.config import AuditOptions, named_in
from spark_rollup.correlate import RULES
from spark_rollup.fleet.judge import FINDINGS, RESTARTS
from spark_rollup.fleet.reduce import DISABLED, KNOWN_PODS, RELEASES
from spark_rollup.report.restart_answer import Known, Question, answer, with_steps
from spark_rollup.report.write import by


def safe_to_restart(spark: SparkSession, options: AuditOptions, question: Question) -> tuple[list[str], Exit]:
    """Answer for one pod task by task, or for all pods in one table: lines, and the exit code.

    Raises `UsageError`: no such pod in the input, or several of its name.
    """
    read, about = audit.prepare(spark, options)
    # what no rule of these says can never be critical
    rules = [rule for rule in RULES if rule.meta.severity is Severity.CRITICAL]
    told = audit.tell(read, audit.asking(spark, options, about, rules))
    found = gather(told.of(FINDINGS))
    known = Known(
        by(with_steps(told.of(RESTARTS), found), "namespace", "pod", "application_id", "task_id"),
        by(told.of(KNOWN_PODS), "namespace", "pod"),
        by(told.of(DISABLED), "detector", "namespace", "pod"),
        about.as_of_us,
        options.verified is not None,
        of_another_major(read.quarantine) if question.pod is None else {},
        read.unfinished,
    )
    lines, code = answer(known, question)
    unused = not_here(
        "--set",
        named_in(options.overrides),
        sorted({str(row["application_id"]) for row in told.of(RELEASES)}),
    )
    return [*lines, unused] if unused else lines, code
