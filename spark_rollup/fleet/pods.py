"""What puts a pod in doubt, and words for the times that no agent watched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent.contract.codec import moment
from spark_rollup.fleet.application import Pod, Pods
from spark_rollup.fleet.events import MICROS, SLOT_US
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.rows import Heard, Unwatched

LOST, DROPPED, EARLIER = "lost-events", "dropped-events", "earlier-events-not-in-input"
SILENT, STOPPED = "silent-agent", "agent-not-running"
FAST = "clock-ahead"
TOO_MANY = "too-many-readings"
CUT = "unread-file"

ROUND_US = 60 * MICROS
GONE_US = 3 * ROUND_US
"""Three rounds of summaries that no longer show a thing: it is over."""

TASKS_A_ROUND = 100
"""Of very many tasks so many are told of in each round of summaries, at least."""


def has_ended(heard: Heard, as_of_us: int) -> bool:
    """Return whether a pod's agent ended with a last word, some time ago: nothing is counted there any more.

    What is open on its volume is said again when an agent is there again.
    """
    return heard.stopped and heard.last_us < as_of_us - SLOT_US


def is_silent(pod: Pod, as_of_us: int) -> bool:
    """Return whether a pod is silent at the audit's time."""
    return any(x.cause == SILENT and x.to_us == as_of_us for x in pod.gaps)


def unrepaired(pod: Pod) -> list[Unwatched]:
    """List the unwatched times after which the pod has not reported everything again."""
    return [x for x in pod.unwatched if pod.heard and x.until_us >= pod.heard.last_us]


class Watched(NamedTuple):
    """Since when a pod is watched by its newest agent, and since when without a break (microseconds)."""

    boot_us: int
    whole_us: int


def renewed(pods: Pods) -> Mapping[str, Watched]:
    """Say since when pods are watched, of those that were for long enough to tell of every task.

    A task that an agent did not name since is not there any more, such as on a pod that was made again with an empty
    volume; or that it went is among what was lost.
    """
    found = {}
    for pod in pods.values():
        if pod.heard and pod.heard.boot_us is not None:
            patience_us = GONE_US + (pod.heard.tasks or 0) * ROUND_US // TASKS_A_ROUND
            whole_us = max([pod.heard.boot_us, *(x.until_us for x in pod.unwatched)])
            if pod.heard.last_us - whole_us > patience_us:
                found[pod.name] = Watched(pod.heard.boot_us, whole_us)
    return found


def doubt(pod: Pod, as_of_us: int, *, of_parts: bool = False) -> str | None:
    """Say why it is unknown what a pod holds by now; None = it is known.

    A pod is not known while it is silent or blind, and until a whole round of summaries came after something was lost;
    while its agent counts findings or tasks that are not in the input; and where something was lost of an agent that
    counts none. One whose agent said that it ends is taken at its word for a moment; what runs there later is not seen.
    `of_parts`: whether blindness of one application or task counts: for the pod it does, for its other tasks not.
    """
    return next(_doubts(pod, as_of_us, of_parts=of_parts), None)


def _doubts(pod: Pod, as_of_us: int, *, of_parts: bool) -> Iterator[str]:
    yield from sorted(
        f"not heard since {moment(x.from_us)}" for x in pod.gaps if x.cause == SILENT and x.to_us == as_of_us
    )
    heard = pod.heard
    if heard and has_ended(heard, as_of_us):
        yield f"its agent ended at {moment(heard.last_us)}"
    for x in unrepaired(pod):
        if of_parts or (x.application_id is None and x.task_id is None):
            yield f"not watched at {moment(x.from_us)}"
    if heard is None:
        return
    number = heard.missed_criticals + heard.missed_warnings
    if number > 0:
        several = "finding that is" if number == 1 else "findings that are"
        yield f"its agent counts {number} open {several} not in the input"
    if heard.level_us is None and any(x.cause == LOST for x in pod.gaps):
        yield "events of its agent are lost, and it does not say again what is open"
    if heard.missed_tasks > 0:
        yield f"tasks that its agent watches and that are not in the input: {heard.missed_tasks}"


def known_pod(namespace: str, pod: Pod, as_of_us: int) -> Row:
    """Say of a pod that was heard of what puts it in doubt, and whether its agent announced its end."""
    gone = pod.heard is not None and has_ended(pod.heard, as_of_us)
    return {
        "namespace": namespace,
        "pod": pod.name,
        "doubt": doubt(pod, as_of_us, of_parts=True),
        "gone": gone,
    }
