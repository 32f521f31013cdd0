"""Every rule, once; the order is the order of lists and documentation."""

from __future__ import annotations

from spark_rollup.correlate import (
    missing_standby,
    resurrected_checkpoint,
    stale_eos_state,
    unaudited,
    unrestored_task,
)
from spark_rollup.correlate.base import Rule

RULES: tuple[Rule, ...] = (
    resurrected_checkpoint.RULE,
    unrestored_task.RULE,
    stale_eos_state.RULE,
    missing_standby.RULE,
    unaudited.RULE,
)
