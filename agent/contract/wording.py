"""What an incident says, and asks for: its sentence and its one instruction, each with whom else it is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.finding import Finding
from agent.contract.grouping import F, Member
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Remedy

NAMED = 6  # tasks or pods that a sentence names; of more it gives the number
ALSO = 2  # other sentences of the same detector that an incident's sentence repeats, the worst first

_AROUND = ".,:;`'()"
_TASK = re.compile(r"\d+_\d+\b")

_HAS = {
    Affected.YES: ("has it", "has at least one of them"),
    Affected.POSSIBLY: ("may have it", "may have one of them"),
    Affected.NO: ("does not have it", "has none of them"),
}


def weight(one: Finding) -> tuple[bool, bool, int, bool, bool, int]:
    """Order what can name an incident, the first first: no remark, what is open, worst, about damage, surest.

    So what was severe and is over is not hidden behind a remark that is still open. Of what is equally bad, what needs
    something at once comes before what merely runs on an affected release.
    """
    return (
        one.severity is Severity.INFO, one.status is not Status.OPEN, -one.severity.rank,
        one.level is not Level.DAMAGE, one.lasting, -one.confidence.rank,
    )  # fmt: skip


def sentence(lead: Member[F], rows: Sequence[Member[F]]) -> str:
    """Say what is wrong, of which other tasks, or pods, the same is true, and what else is said of other tasks.

    The same is what has the same sentence, but for names and numbers: one detector may say good and bad of two tasks.
    """
    said_by, about = lead.finding, lead.finding.summary
    others = [
        x for x in rows if x.finding.detector == said_by.detector and x.finding.status is said_by.status
    ]
    of_pods = not said_by.task_id and any(x.link.pod for x in rows)

    def place(one: Member[F]) -> str:
        return one.link.pod if of_pods else one.finding.task_id or ""

    others = [x for x in others if place(x)]
    # what names another task is not the same on another pod
    means = _meanings([lead, *others], but=_TASK if of_pods else None)
    said = {means(about)}
    same = {place(x) for x in others if means(x.finding.summary) in said}
    parts = [_with_others(about, "pod" if of_pods else "task", same - {place(lead)})]
    remark = said_by.severity is Severity.INFO
    for x in sorted(others, key=lambda x: (weight(x.finding), x.finding.opened_at_us, place(x))):
        text = x.finding.summary
        if (
            means(text) not in said
            and (remark or x.finding.severity is not Severity.INFO)
            and len(parts) <= ALSO
        ):
            said.add(means(text))
            where = f" on {x.link.pod}" if of_pods and x.link.pod not in text else ""
            parts.append(f"Also{where}: {text}")
    return " ".join(parts)


def as_sure_as(lead: Finding, title: str) -> str:
    """Write what goes wrong as a fact only where it is confirmed damage, else as a risk or a suspicion."""
    is_fact = lead.level is Level.DAMAGE and lead.confidence is Confidence.CONFIRMED
    if not title or is_fact or lead.level not in (Level.DAMAGE, Level.EXPOSURE):
        return title
    word = "Risk" if lead.level is Level.EXPOSURE else "Suspected"
    return f"{word}: {title[0].lower()}{title[1:]}"


def of_release(upstream: Sequence[str], affected: Affected) -> str:
    """Say whether the release has these bugs."""
    return f"this release {_HAS[affected][len(upstream) > 1]}"


def bugs(upstream: Sequence[str], affected: Affected, confidence: Confidence) -> str:
    """Name the bugs, as possible ones of what is not confirmed, and say whether the release has them."""
    word = "Bug" if confidence is Confidence.CONFIRMED else "Possible bug"
    return (
        f"{word}{'s' if len(upstream) > 1 else ''}: {', '.join(upstream)}; {of_release(upstream, affected)}"
    )


def _meanings(rows: Iterable[Member[F]], but: re.Pattern[str] | None = None) -> Callable[[str], str]:
    """Make what reduces sentences of these findings to their meaning; `but`: words that stay."""
    every = {name for x in rows for name in _names(x)}
    return lambda text: " ".join(
        word if but and but.search(word) else _meaning(word, every) for word in text.split()
    )


def _meaning(word: str, names: Collection[str]) -> str:
    """Give a word of a sentence, or `#` where it differs from one task to the next: names, and what has a digit."""
    return "#" if word.strip(_AROUND) in names or any(x.isdigit() for x in word) else word


def _with_others(summary: str, kind: str, others: Collection[str]) -> str:
    """Add to a summary what else it is true of: `task` or `pod`, and their names."""
    if not others:
        return summary
    stop = "" if summary.endswith(".") else "."
    among = f"{'in' if kind == 'task' else 'on'} {kind}{'' if len(others) == 1 else 's'}"
    return f"{summary}{stop} The same {among} {named(sorted(others))}."


class NextStep(NamedTuple):
    """What an incident asks for."""

    text: str
    tasks: tuple[str, ...]  # tasks that it is about, on one pod: all of them are done before the one start


def step(says: Member[F], rows: Sequence[Member[F]]) -> NextStep:
    """Write the instruction, and for which other tasks and pods it is to be followed.

    Those of which the same is open or over, as severe, and asks for the same.
    """
    means, pod = _meanings(rows), says.link.pod

    def asks(one: Finding) -> tuple[object, ...]:
        return one.detector, one.status, one.severity, means(one.next_action)

    said = asks(says.finding)
    same = [(x.finding.task_id, x.link.pod) for x in rows if x.finding.task_id and asks(x.finding) == said]
    here = sorted({task for task, where in same if where == pod})
    elsewhere = sorted({f"{task} on {where}" for task, where in same if where not in ("", pod)})
    return NextStep(_repeat_for(says.finding, here, elsewhere), tuple(here))


_ORDER = "copy all directories, remove all, and only then start. For each task:"


def _repeat_for(one: Finding, here: Sequence[str], elsewhere: Sequence[str]) -> str:
    """Add to the instruction about one task for which others it is to be followed.

    One process has several tasks: who removes the directory of one of them and starts again is too late for the rest.
    So the order is said before the instruction, as a condition where a check comes first, and not at all where copies
    are to be kept. What is about no single task's directory stays as it is.
    """
    asked, task_id = one.next_action, one.task_id
    if not task_id or (task_id not in asked and "task directory" not in asked):
        return asked
    parts = [asked]
    if len(here) > 1:
        tasks = f"for tasks {named(here)}"
        order = {
            Remedy.KEEP: f"This is {tasks}.",
            Remedy.CHECK_FIRST: f"Check tasks {named(here)}, each as said below."
            f" If more than one must be removed: {_ORDER}",
        }.get(one.remedy, f"Do this {tasks} in one stop: {_ORDER}")
        parts.insert(0, order if "remove t" in asked and "start" in asked else f"This is {tasks}.")
    if elsewhere:
        # a command at the end stays one that can be copied
        parts[-1] = asked if asked.endswith(".") else f"{asked} ."
        parts.append(f"Then the same for {named(elsewhere)}.")
    return " ".join(parts)


def continued(lines: Iterable[str]) -> list[str]:
    """End each line on which a command in backquotes goes on as a shell wants it, so that it can be pasted."""
    shown, is_command = list[str](), False
    for line in lines:
        is_command ^= line.count("`") % 2 == 1
        shown.append(f"{line} \\" if is_command else line)
    return shown


def named(names: Sequence[str]) -> str:
    """List tasks or pods for a line of text, at most `NAMED`; the rest is a number."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _names(one: Member[F]) -> tuple[str, ...]:
    """Names that differ in sentences of the same meaning."""
    return (*pods_of(one), *one.link.pods, *(x for x in (one.finding.task_id, one.finding.store) if x))


def pods_of(one: Member[F]) -> tuple[str, ...]:
    """List the pods that a finding is about; `pods` also has those that it was compared with."""
    is_of_several = not one.link.pod or one.mechanism in (
        Mechanism.SHARED_STATE.slug,
        Mechanism.UNEQUAL_COPIES.slug,
    )
    return one.link.pods if is_of_several else (one.link.pod,)


BEYOND_FILES = (
    "Files can't show records that were aborted or lost below an offset: `statewarden verify` compares a store with its"
    " changelog."
)
"""For who looks behind an all-clear: some damaged lives leave the files of an undamaged one (`tests/proof`)."""
