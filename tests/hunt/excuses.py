"""Loud words that are true of a directory although no store is wrong: one entry per detector, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.hunt.actions import ACTIONS
from tests.hunt.design import Run
from tests.hunt.truth import Difference
from tests.live.judge import UNCLEAN, Said
from tests.live.plan import EOS, is_exposed, numbers

FACTS = frozenset({"cloned-volume", "cloned-process"})
"""What these state is seen, not concluded: at any severity."""
Marks = Sequence[tuple[int, str]]
Excuse = Callable[[Run, Said, Marks], str]


def excuse(run: Run, said: Said, marks: Marks) -> str:
    """Tell why a warning is a true one; empty: it is not. A critical word has no excuse but the truth, or a fact.

    Args:
        run: What was played.
        said: The word.
        marks: The timeline.
    """
    told_by = sorted({x.action for x in run.steps if said.detector in ACTIONS[x.action].tells})
    if said.severity != "warning" and said.detector not in FACTS:
        return ""
    ask = EXCUSES.get(said.detector)
    return ", ".join(told_by) or (ask(run, said, marks) if ask else "")


def blind_spot(run: Run, difference: Difference) -> str:
    """Tell which blind spot, announced on a detector's page, a silence falls into; empty: none."""
    was_reset = any(step.action == "reset" and not step.args.get("cleanup") for step in run.steps)
    if was_reset and difference.extra and numbers(run.release) >= (4, 3):
        return "changelog-truncated: from 4.3 on a changelog may grow past the old offset before anything is flushed"
    return ""


def _exposed(run: Run, _said: Said, _marks: Marks) -> str:
    return "the release has KAFKA-20685" if run.guarantee == EOS and is_exposed(run.release) else ""


def _exposed_and_ended(run: Run, said: Said, marks: Marks) -> str:
    return _exposed(run, said, marks) and ("after an unclean end" if _unclean(said, marks) else "")


def _wiped_often(run: Run, said: Said, marks: Marks) -> str:
    disturbed = run.guarantee == EOS and _disturbances(said, marks) > 3
    return "under exactly-once every start and every unclean end may wipe" if disturbed else ""


def _early_cleaner(run: Run, _said: Said, _marks: Marks) -> str:
    return "the release has KAFKA-20805" if numbers(run.release)[:2] == (4, 3) else ""


def _torn(_run: Run, said: Said, marks: Marks) -> str:
    return "a process was ended while it deleted" if _unclean(said, marks) else ""


def _torn_segment(run: Run, said: Said, marks: Marks) -> str:
    return _torn(run, said, marks) if "was deleted while no process held it" in said.summary else ""


def _old_segment(run: Run, said: Said, marks: Marks) -> str:
    return "the release has KAFKA-20663" if run.release == "4.3.0" and _unclean(said, marks) else ""


def _moved_often(_run: Run, said: Said, marks: Marks) -> str:
    return "restarted and disturbed again and again" if _disturbances(said, marks) > 3 else ""


def _disturbances(said: Said, marks: Marks) -> int:
    starts = sum(at_us <= said.opened_at_us and " starts " in what for at_us, what in marks)
    return starts + _unclean(said, marks)


def _unclean(said: Said, marks: Marks) -> int:
    """Count what ended uncleanly before a word."""
    return sum(at_us <= said.opened_at_us and what.endswith(UNCLEAN) for at_us, what in marks)


EXCUSES: dict[str, Excuse] = {
    "stale-eos-checkpoint": _exposed,
    "stale-eos-state": _exposed,
    "skipped-eos-wipe": _exposed_and_ended,
    "wipe-storm": _wiped_often,
    "premature-cleanup": _early_cleaner,
    "stale-segment-offset": _old_segment,
    "task-churn": _moved_often,
    "torn-store": _torn,
    "store-shrank": _torn_segment,
}
