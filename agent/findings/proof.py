"""What proves or refutes a suspicion about a store: its comparison with the changelog."""

from __future__ import annotations

import shlex

from agent.contract.events import Confidence, Level
from agent.judging.base import DetectorMeta, Kind, Scope
from agent.layout.names import GLOBAL_DIRECTORY

WHILE_UNUSED = "only if the task has written nothing since"
"""When `equal` is a refutation: what is computed from a wrong value is in store and changelog alike."""
_REFUTED = f"`equal` or `behind` clears it {WHILE_UNUSED}"


WHERE_PROVED = "beside the running application or on a stopped one"


def can_be_proved(meta: DetectorMeta) -> bool:
    """Return whether what a detector suspects would show in the content of a store that is still there."""
    return meta.level is Level.DAMAGE and meta.kind is Kind.DAMAGE and meta.scope is Scope.TASK


def proof_command(application_id: str, task_id: str, store: str | None) -> str:
    """Return the command that compares a task's stores, or one of them, with their changelogs.

    `task_id`: of the task, for example `0_1`. `store`: None = all of the task. Gives the command; the state
    directory and the brokers are left for the reader to fill in.
    """
    words = ["--application", application_id, "--task", task_id, *(("--store", store) if store else ())]
    return f"statewarden verify STATE_DIR --bootstrap-servers HOST:9092 {shlex.join(words)}"


def proof_first(how: str, action: str) -> str:
    """Put the proof before what is to be done if it does not refute: findings and alerts say both in this order."""
    return f"Check it first, {WHERE_PROVED}: {how}; {_REFUTED}. Otherwise: {action}"


def decides(meta: DetectorMeta, confidence: Confidence, task_id: str | None) -> bool:
    """Return whether the comparison would prove or refute what is suspected."""
    is_open = confidence is Confidence.SUSPECTED and can_be_proved(meta)
    return is_open and task_id not in (None, GLOBAL_DIRECTORY)


def with_proof(
    action: str,
    meta: DetectorMeta,
    confidence: Confidence,
    application_id: str,
    task_id: str | None,
    store: str | None,
    *,
    is_ahead: bool = False,
) -> str:
    """Return a next action with the proof, where something is suspected that it can decide.

    The proof comes first, but not where the damage is ahead: the next start may come at any moment.
    """
    if task_id is None or not decides(meta, confidence, task_id):
        return action
    command = f"`{proof_command(application_id, task_id, store)}`"
    if is_ahead:
        return f"{action} To check before you remove anything ({_REFUTED}): {command}"
    return proof_first(command, action)
