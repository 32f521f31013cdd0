"""Judge a drawn run: what is true against what the agents and the rollup said. Values in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.lab.actions import ACTIONS
from tests.lab.design import Run, Step
from tests.lab.excuses import Case, blind_spot, excuse
from tests.lab.plan import EOS
from tests.lab.said import Said
from tests.lab.timeline import Asked, Timeline, pods_of
from tests.lab.topics import store_behind
from tests.lab.truth import Difference, store_of

MOST_MEMORY_MIB = 64.0
TELLS_LOSS = frozenset(
    {
        "carried-checkpoint", "changelog-truncated", "deleted-while-held", "diverged-replica", "false-clean-store",
        "lost-segment",
        "offset-beyond-durable",
        "overlaid-store", "resurrected-checkpoint", "setup", "skipped-record", "store-shrank",
        "torn-store", "unrestored-store", "unrestored-task", "zombie-state",
    }
)  # fmt: skip
"""Detectors, and rules of the rollup, whose statement explains that something is missing."""
TELLS_EXCESS = frozenset(
    {
        "changelog-truncated", "data-beyond-changelog", "diverged-replica", "interrupted-wipe", "overlaid-store",
        "setup",
        "skipped-eos-wipe", "skipped-record", "stale-eos-state", "zombie-state",
    }
)  # fmt: skip
"""Detectors whose statement explains that something is counted twice, or was never committed."""
REPEATS = {"stale-eos-state": "skipped-eos-wipe", "unrestored-task": "unrestored-store"}
"""Rules of the rollup that repeat an agent's word about a copy: they are judged at the time of that word."""
HARMLESS = frozenset({"excused", "blind_spot", "undecided"})
DAMAGE = TELLS_LOSS | TELLS_EXCESS
"""What these state is about one pod's copy, and is compared with it."""
NEEDS_ACTION = frozenset({"changelog-truncated"})
"""What these state happens only if an action of the run does it."""
OF_ONE = frozenset({"skipped-record"})
"""What these state is about a single record, which can be a deletion: a greater difference has another cause."""
OF_TWO = frozenset({"diverged-replica"})
"""What these state is that two copies differ: it is right if either of them, or the store, was found wrong."""
OF_UNCOMMITTED = frozenset(
    {"data-beyond-changelog", "interrupted-wipe", "skipped-eos-wipe", "stale-eos-state"}
)
"""What these state is that a store holds what was never committed: its input is read again."""
_SEGMENT = re.compile(r"put into [^;]*?\.(\d{13})\b")
LATER = frozenset({"overlaid-store", "setup", "torn-store", "zombie-state"})
"""What these state goes wrong later; the others state that it has: the next look must find it."""


@dataclass(frozen=True, slots=True)
class Truth:
    """One difference of a look, with its task."""

    at_us: int
    task: str
    difference: Difference
    is_allowed: bool  # the guarantee, or an action, allows it
    pod: str = ""  # whose copy it is; empty: the active stores taken together, or a topic

    @property
    def what(self) -> str:
        """In one line."""
        one = self.difference
        whose = f"{self.pod}'s copy of " if self.pod else ""
        figures = f"{one.lost} lost, {one.extra} too many of {one.expected}"
        return f"{whose}{one.store}: {figures} ({', '.join(one.examples)})"


@dataclass(frozen=True, slots=True)
class Health:
    """How one agent fared."""

    agent: str
    exit_code: int | None  # None: it had to be killed
    peak_mib: float  # its resident memory at its highest
    errors: tuple[str, ...] = ()  # what it wrote to standard error, and lines of its log at level error


@dataclass(frozen=True, slots=True)
class Judgement:
    """One thing that is not as it must be; or a loud word that was true, or a silence that a page announces."""

    # `false_alarm`, `miss`, `wrong_reason`, `blind`, `growth`, `crash`, `incidents`; or `excused`, `blind_spot`; or
    # `undecided`: about a copy that nobody could ask afterwards
    kind: str
    who: str  # agent, or `rollup`
    task: str
    what: str
    detector: str = ""  # of a word that was said
    severity: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it counts against us."""
        return self.kind not in HARMLESS


def is_allowed(run: Run, done: Iterable[Step], difference: Difference) -> bool:
    """Tell whether a difference is what the guarantee, or one of the steps before the check, allows."""
    store = store_behind(difference.store)
    may: set[str] = set()
    for step in done:
        effects = ACTIONS[step.action].may
        if "loses" in effects and step.args["store"] != store:
            continue
        may = (may - {"adds"} if "doubles" in effects else may) | effects
    lost_is_allowed = not difference.lost or "loses" in may
    extra_is_allowed = not difference.extra or "loses" in may or (run.guarantee != EOS and "adds" in may)
    return lost_is_allowed and extra_is_allowed


def judge(
    run: Run,
    truths: Sequence[Truth],
    saids: Sequence[Said],
    healths: Sequence[Health],
    marks: Sequence[tuple[int, str]],
    asked: Sequence[Asked] = (),
) -> tuple[Judgement, ...]:
    """Compare all differences, allowed ones too, with the loudest word of each finding and of the rollup's verdicts.

    `asked`: of each look, in order; none: only the active stores were compared.
    """
    loud = [_at_its_time(said, saids) for said in saids if said.is_loud]
    wrong = [truth for truth in truths if not truth.is_allowed]
    timeline = Timeline(run, marks)
    return (
        *_misses(run, timeline, wrong, loud),
        *(_word(Case(run, said, timeline, saids, asked), truths) for said in loud),
        *(judgement for health in healths for judgement in _unwell(health)),
    )


def _at_its_time(said: Said, saids: Iterable[Said]) -> Said:
    """Put a rollup's word that repeats an agent's at the time of that."""
    kind = said.agent.removeprefix("rollup")
    repeated = [
        x.opened_at_us
        for x in saids
        if x.detector == REPEATS.get(said.detector) and x.agent.endswith(kind) and x.task == said.task
        if pods_of(x) == pods_of(said)
    ]
    return replace(said, opened_at_us=min(repeated)) if repeated else said


def _misses(
    run: Run, timeline: Timeline, wrong: Iterable[Truth], loud: Sequence[Said]
) -> Iterable[Judgement]:
    """Ask of each task with a wrong store whether the told agents said so, and for the right reason."""
    seen = set()
    active = {(x.at_us, x.task, x.difference.store) for x in wrong if not x.pod}
    for truth in wrong:
        key = (truth.pod, truth.task, truth.difference.store)
        if key in seen or (truth.pod and (truth.at_us, *key[1:]) in active):
            continue  # of a store that is wrong where it is active, no copy says more
        seen.add(key)
        said = [
            x
            for x in loud
            if x.agent.endswith("-told") and x.task in (truth.task, "-") and truth.pod in ("", *pods_of(x))
        ]
        if any(explains(timeline, x.detector, truth) and _is_enough(x.detector, truth) for x in said):
            continue
        if announced := blind_spot(run, timeline, truth.at_us, truth.difference, truth.pod):
            yield Judgement("blind_spot", "told", truth.task, f"{truth.what} [{announced}]")
        elif not said:
            yield Judgement("miss", "told", truth.task, truth.what)
        else:
            names = ", ".join(sorted({x.detector for x in said}))
            yield Judgement("wrong_reason", "told", truth.task, f"{truth.what}; said: {names}")


def explains(timeline: Timeline, detector: str, truth: Truth) -> bool:
    """Tell whether what a detector states can be the cause of a difference: by its kind, and by what was done."""
    lost, extra, store = truth.difference.lost, truth.difference.extra, store_behind(truth.difference.store)
    told = (TELLS_LOSS if lost else frozenset()) | (TELLS_EXCESS if extra else frozenset())
    could_be = detector not in NEEDS_ACTION or any(
        detector in ACTIONS[done.step.action].tells and done.step.args.get("store", store) == store
        for done in timeline.done
        if done.at_us <= truth.at_us
    )
    return detector in told and could_be


def _is_enough(detector: str, truth: Truth) -> bool:
    return detector not in OF_ONE or truth.difference.lost + truth.difference.extra == 1


def _word(case: Case, truths: Sequence[Truth]) -> Judgement:
    """Judge one loud word: it is right if its task is wrong by such a cause, or if it is a true one all the same."""
    said, asked = case.said, case.asked
    if said.detector in OF_TWO:
        return _word_of_two(said, truths)
    looks = asked or [Asked(at_us, None) for at_us in case.timeline.looks]
    of_copy = bool(case.pod) and said.task != "-" and said.detector in DAMAGE
    due = next(
        (x for x in looks if x.at_us >= case.at_us and (not of_copy or _tells_of(x, said, case.pod))), None
    )
    elsewhere = {(x.at_us, *copy[1:]) for x in looks for copy in x.copies or ()} if of_copy else set()
    true = [
        x
        for x in truths
        if said.task in (x.task, "-") and explains(case.timeline, said.detector, x)
        if x.pod in ("", case.pod) and (x.pod or (x.at_us, x.task, x.difference.store) not in elsewhere)
        if due is None or x.at_us <= due.at_us or said.detector in LATER
    ]
    reason = true[0].what if true else excuse(case)
    wrong = "blind" if said.detector == "auditor-blind" else "false_alarm"
    replaced = of_copy and case.timeline.is_replaced(case.pod, case.at_us)
    nobody = of_copy and bool(asked) and (due is None or replaced or any(x(case, due) for x in _UNDECIDED))
    kind = "excused" if reason else "undecided" if nobody else wrong
    what = f"{said.summary} [{reason}]" if reason else f"after «{said.when}»: {said.summary}"
    return Judgement(kind, said.agent, said.task, what, said.detector, said.severity)


def _word_of_two(said: Said, truths: Sequence[Truth]) -> Judgement:
    """Judge a word about two copies at one offset; what came of a difference is there at every look since."""
    found = next((x.what for x in truths if x.task == said.task), "")
    kind, why = ("excused", f" [{found}]") if found else ("false_alarm", "")
    return Judgement(kind, said.agent, said.task, f"{said.summary}{why}", said.detector, said.severity)


def _is_wiped(case: Case, due: Asked) -> bool:
    """Tell whether the pod ended uncleanly between a word and the look: exactly-once wipes what it then finds.

    Transactional stores are wiped only if their task is corrupted.
    """
    ends = case.timeline.corruptions if case.is_transactional else case.timeline.unclean
    return case.run.guarantee == EOS and any(at_us > case.at_us for at_us in ends(case.pod, due.at_us))


_OF_SEGMENTS = frozenset({"lost-segment", "offset-beyond-durable"})


def _is_expired(case: Case, due: Asked) -> bool:
    """Tell whether every segment that a word names started to expire by the look: such windows are not compared."""
    named = [int(found) for found in _SEGMENT.findall(case.said.summary)]
    settings, newest_ms = case.run.settings, case.timeline.stream_ms(due.at_us)
    if case.said.detector not in _OF_SEGMENTS or not named or newest_ms is None:
        return False
    joined = case.said.store.startswith("KSTREAM-")
    kept_ms = (
        2 * int(settings["window.ms"]) + int(settings["grace.ms"])
        if joined
        else int(settings["retention.ms"])
    )
    return max(named) <= newest_ms - kept_ms


def _may_be_of_a_standby(case: Case, due: Asked) -> bool:
    """Tell whether the word may be about a standby, and the release lets its copy not be asked."""
    return due.copies is None and int(case.run.settings.get("num.standby.replicas", 0)) > 0


def _is_read_again(case: Case, due: Asked) -> bool:
    """Tell whether all that the word can be about keeps latest records: by the look they were read again."""
    mine = [
        store_of(store)
        for pod, task, store in due.copies or ()
        if (pod, task) == (case.pod, case.said.task) and case.said.store in ("-", store)
    ]
    return case.said.detector in OF_UNCOMMITTED and bool(mine) and all(x and x.is_latest for x in mine)


_UNDECIDED = (_is_expired, _is_wiped, _may_be_of_a_standby, _is_read_again)


def _tells_of(look: Asked, said: Said, pod: str) -> bool:
    """Tell whether a look has compared the pod's copy that a word is about, or could ask for no copy at all."""
    return look.copies is None or any(
        (pod, said.task) == copy[:2] and said.store in ("-", copy[2]) for copy in look.copies
    )


def _unwell(health: Health) -> Iterable[Judgement]:
    if health.exit_code != 0 or health.errors:
        what = f"exit code {health.exit_code}; {'; '.join(health.errors)[:300]}"
        yield Judgement("crash", health.agent, "-", what)
    if health.peak_mib > MOST_MEMORY_MIB:
        yield Judgement("growth", health.agent, "-", f"{health.peak_mib:.0f} MiB at its highest")


def verdict(judgements: Iterable[Judgement]) -> Mapping[str, int]:
    """Count what counts against us, by kind."""
    counts: dict[str, int] = {}
    for one in judgements:
        if one.is_wrong:
            counts[one.kind] = counts.get(one.kind, 0) + 1
    return counts
