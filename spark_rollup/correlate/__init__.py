"""Every rule, once; the order is the order of lists and documentation."""

from __future__ import annotations

from spark_rollup.correlate import (
    cloned_process,
    cloned_volume,
    diverged_replica,
    missing_standby,
    resurrected_checkpoint,
    split_owner,
    stale_eos_state,
    task_churn,
    unaudited,
    unprotected_task,
    unrestored_task,
)
from spark_rollup.fleet.application import Rule

RULES: tuple[Rule, ...] = (
    resurrected_checkpoint.RULE,
    unrestored_task.RULE,
    stale_eos_state.RULE,
    diverged_replica.RULE,
    cloned_process.RULE,
    cloned_volume.RULE,
    split_owner.RULE,
    missing_standby.RULE,
    unprotected_task.RULE,
    task_churn.RULE,
    unaudited.RULE,
)
