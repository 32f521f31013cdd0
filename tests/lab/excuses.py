"""Loud words that are true of a directory although no store is wrong: one entry per detector, each with its reason.

A reason holds for the pod, the task and the time of the word: what another pod did, another release ran or came later
excuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.lab.actions import ACTIONS
from tests.lab.design import Run
from tests.lab.plan import EOS, is_exposed, is_transactional, numbers
from tests.lab.said import Said
from tests.lab.timeline import MS_US, Asked, Done, Timeline, pods_of
from tests.lab.truth import Difference, topic_of

FACTS = frozenset({"cloned-volume", "cloned-process"})
"""What these state is seen, not concluded: at any severity."""
DEEDS = frozenset({"changelog-truncated"})
"""What these state is what a step did to that very store, whether it was lost by it or not: at any severity."""
EXPOSURE = "stale-eos-checkpoint"
"""Its critical word is about the next start, before anything is wrong: it is true of a state that was left so."""
WINDOWED = frozenset({"window", "session", "versioned", "join", "inner"})
"""Stores of which records, or segments, expire."""
IN_MEMORY = frozenset({"memory"})
CHANGES = 6
"""A warning counts twelve moves or restores, or six wipes: a change can move a task away and back."""


@dataclass(frozen=True, slots=True)
class Case:
    """A word with all that is known around it."""

    run: Run
    said: Said
    timeline: Timeline
    saids: Sequence[Said]  # every word of the run, quiet ones included
    asked: Sequence[Asked] = ()  # of each look, in order

    @property
    def pod(self) -> str:
        """Whose state it is about; empty: no one pod's."""
        return next(iter(pods_of(self.said)), "")

    @property
    def at_us(self) -> int:
        """When it was said."""
        return self.timeline.when(self.said)

    @property
    def is_transactional(self) -> bool:
        """Whether its pod's stores were transactional then."""
        return is_transactional(self.run.settings, self.timeline.release(self.pod, self.at_us))


def excuse(case: Case) -> str:
    """Tell why a word is a true one; empty: it is not. A critical one has no excuse but the truth, a fact or a deed."""
    said = case.said
    if said.severity != "warning" and said.detector == EXPOSURE:
        return _exposed_and_left(case)
    if said.detector == "unopenable-task":  # about one process, and nothing is lost by it
        return _cannot_open(case)
    if said.severity != "warning" and said.detector not in FACTS | DEEDS:
        return ""
    told_by = sorted({done.step.words() for done in case.timeline.before(said) if tells(done, said)})
    ask = EXCUSES.get(said.detector)
    return ", ".join(told_by) or (ask(case) if ask else "")


def tells(done: Done, said: Said) -> bool:
    """Tell whether a word states what a step did to this store, or why it blinded the agents."""
    action, args = ACTIONS[done.step.action], done.step.args
    if said.detector == "auditor-blind" and f"({action.blinds})" not in said.summary:
        return False
    return said.detector in action.tells and said.store in ("-", args.get("store", said.store))


def blind_spot(run: Run, timeline: Timeline, at_us: int, difference: Difference, pod: str) -> str:
    """Tell which blind spot, announced on a detector's page, a silence falls into; empty: none.

    `at_us`: of the look. `pod`: whose copy it is; empty: the active stores taken together.
    """
    if difference.store in IN_MEMORY:
        return "limits: a store in memory is not on disk"
    if difference.store == "versioned" and not difference.lost and _forgets_deletions(timeline, at_us):
        return "limits: a versioned store forgets a deletion that has the time of what it deletes"
    resets = [
        done
        for done in timeline.done
        if done.at_us <= at_us and done.step.action == "reset" and done.step.args.get("cleanup") == "False"
    ]
    late = [done for done in resets if numbers(timeline.release("a", done.at_us)) >= (4, 3)]
    if late and difference.extra:
        return "changelog-truncated: from 4.3 on a changelog may grow past the old offset before anything is flushed"
    unseen = [done for done in resets if done not in late and _wiped_before_a_close(run, timeline, done)]
    if unseen and difference.extra:
        return "changelog-truncated: up to 4.2 exactly-once keeps an offset once it has closed; a kill wipes before"
    if _forgotten_under_eos(run, timeline, at_us) and difference.lost and not difference.extra:
        return "unrestored-store: up to 2.1 exactly-once claims nothing before a close; a kill wipes before"
    # under exactly-once only a standby can have been closed between two records
    one_too_far = any(
        _read_one_too_far(run, timeline, each, at_us) for each in run.pods if pod or run.guarantee != EOS
    )
    if (
        one_too_far
        and difference.lost + difference.extra == 1
        and _hides_one(timeline, pod, at_us, difference)
    ):
        return "skipped-record: not every store shows the record that an upgrade from 2.5 skips"
    if difference.extra or not difference.lost:
        return ""
    whose = {pod} if pod else timeline.started(at_us)
    if any(_overtaken(run, timeline, each, at_us, difference) for each in whose):
        return "split-owner: up to 2.5 an owner that was paused may claim what the next one wrote"
    if any(_flushed_in_vain(timeline, each, at_us, difference) for each in whose):
        return "offset-beyond-durable: 2.4 and 2.5 commit although a flush failed"
    if not pod and any(_skips_input(timeline, each, at_us) for each in whose):
        return "limits: a task that is revived in a rebalance skips input, and no disk shows it"
    return ""


def _forgets_deletions(timeline: Timeline, at_us: int) -> bool:
    """All keys were deleted at the time of the newest records, and some were sent again with an older time.

    Source:
        docs/found/forgotten-tombstone.md
    """
    again = [x.step.args for x in timeline.done if x.at_us <= at_us and x.step.action == "again"]
    deleted = next((number for number, args in enumerate(again) if args["delete"] == "True"), len(again))
    return any(args["delete"] == "False" and int(args["back_ms"]) for args in again[deleted:])


def _skips_input(timeline: Timeline, pod: str, at_us: int) -> bool:
    """A commit of this pod timed out: its task may go on behind input that it never counted. Copies agree then.

    Source:
        docs/found/skipped-input.md
    """
    return any(
        x.step.action == "commit-fails"
        and x.step.args["pod"] == pod
        and x.at_us <= at_us
        and numbers(timeline.release(pod, x.at_us)) >= (3, 8)
        for x in timeline.done
    )


def _overtaken(run: Run, timeline: Timeline, pod: str, at_us: int, difference: Difference) -> bool:
    """A pause that costs a pod its tasks: it writes a checkpoint behind the next owner's records.

    To a changelog that is the source topic no owner writes.

    Source:
        docs/found/overtaken-owner.md
    """
    own = not topic_of(difference.store) or run.settings.get("topology.optimization") != "all"
    fenced = run.guarantee == EOS or len(timeline.started(at_us)) < 2
    return any(
        own and not fenced and difference.lost <= timeline.sent_around(pause)
        for pause in timeline.pauses(pod, at_us)
        if numbers(timeline.release(pod, pause[0])) < (2, 6)
    )


def _flushed_in_vain(timeline: Timeline, pod: str, at_us: int, difference: Difference) -> bool:
    """A full volume: what was only in memory is committed, and lost.

    Source:
        docs/found/swallowed-flush.md
    """
    full = [x for x in timeline.done if x.at_us <= at_us and x.step.action == "disk-full" and pod in x.pods]
    return any(
        difference.lost <= timeline.sent_around((x.at_us, x.at_us + int(x.step.args["for_ms"]) * MS_US))
        for x in full
        if (2, 4) <= numbers(timeline.release(pod, x.at_us)) < (2, 6)
    )


def _read_one_too_far(run: Run, timeline: Timeline, pod: str, at_us: int) -> bool:
    """An upgrade in place to 2.6 or later: the record that another pod wrote at the old offset is skipped."""
    new = numbers(timeline.release(pod, at_us)) >= (2, 6)
    return new and numbers(run.release) < (2, 6)


def _forgotten_under_eos(run: Run, timeline: Timeline, at_us: int) -> bool:
    """KAFKA-7672 without an offset: nothing is claimed before an orderly close, and what is killed first is wiped."""
    old = any((2, 0, 1) <= numbers(timeline.release(pod, at_us)) < (2, 2) for pod in run.pods)
    return run.guarantee == EOS and old and not all(timeline.closes_next(pod, at_us) for pod in run.pods)


def _hides_one(timeline: Timeline, pod: str, at_us: int, difference: Difference) -> bool:
    """Tell whether nothing on disk need show the record that was skipped: puts are exact, and known at a close."""
    store = difference.store
    windowed = store in WINDOWED or store.startswith("KSTREAM-")
    stored = numbers(timeline.release(pod, at_us)) >= (4, 3)
    return not pod or windowed or stored or not timeline.closed_since_upgrade(pod)


def _wiped_before_a_close(run: Run, timeline: Timeline, reset: Done) -> bool:
    """No offset of after a reset came to the disk with the store that was there before it."""
    return run.guarantee == EOS and not any(timeline.ended_clean(pod, reset.at_us) for pod in run.pods)


def _exposed_and_left(case: Case) -> str:
    """A pod that ended uncleanly, or has the copy of a running one, is what the next start would trust."""
    copied = any(
        done.step.action == "snapshot" and done.step.args["of"] == "running"
        for done in case.timeline.before(case.said)
        if done.step.args.get("pod") == case.pod
    )
    left = copied or case.timeline.left_uncleanly(case.pod, case.at_us) is not None
    return _exposed(case) and "and its pod was left by an unclean end" if left else ""


def _exposed(case: Case) -> str:
    exposed = case.run.guarantee == EOS and is_exposed(case.timeline.release(case.pod, case.at_us))
    return "the release that ran has KAFKA-20685" if exposed else ""


def _exposed_and_ended(case: Case) -> str:
    ended_us = case.timeline.left_uncleanly(case.pod, case.at_us)
    if ended_us is None:
        return ""
    release = case.timeline.release(case.pod, ended_us)
    if numbers(release) <= (2, 5, 0) and int(case.run.settings.get("num.standby.replicas", 0)):
        return "its pod ended uncleanly, and up to 2.5.0 a standby is not wiped (KAFKA-9891)"
    return _exposed(case) and "its pod ended uncleanly" if is_exposed(release) else ""


def _echo(case: Case) -> str:
    """The rollup repeats an agent's word: it is as true as that."""
    agents = f"-{case.said.agent.partition('-')[2]}"
    for said in case.saids:
        is_source = said.detector == "skipped-eos-wipe" and said.task == case.said.task
        if is_source and said.agent.endswith(agents) and pods_of(said) & pods_of(case.said):
            source = Case(case.run, said, case.timeline, case.saids)
            if reason := _exposed_and_ended(source):
                return f"{said.agent} said so: {reason}"
    return ""


def _early_cleaner(case: Case) -> str:
    has_bug = numbers(case.timeline.release(case.pod, case.at_us))[:2] == (4, 3)
    age_us = case.at_us - case.timeline.first_start(case.pod)
    is_old = age_us >= int(case.run.settings.get("state.cleanup.delay.ms", 0)) * MS_US
    return (
        "the release that ran has KAFKA-20805, and the directory was old enough" if has_bug and is_old else ""
    )


def _torn(case: Case) -> str:
    left = case.timeline.left_uncleanly(case.pod, case.at_us)
    return "its pod was ended while it may have deleted" if left is not None and _deletes(case) else ""


def _torn_segment(case: Case) -> str:
    return _torn(case) if "was deleted while no process held it" in case.said.summary else ""


def _deletes(case: Case) -> bool:
    """Tell whether anything in this run deletes a store: wipes, expired segments, `cleanUp()` or the cleaner."""
    cleaned = any(done.step.action == "cleanup" for done in case.timeline.before(case.said))
    windowed = WINDOWED & set(case.run.stores)
    return case.run.guarantee == EOS or cleaned or bool(windowed)


def _half_cleaned(case: Case) -> str:
    killed = [
        done
        for done in case.timeline.before(case.said)
        if done.step.action == "cleanup" and done.step.args["killed_after_ms"] != "0"
    ]
    return "its pod was killed in the middle of cleanUp()" if killed else ""


def _old_segment(case: Case) -> str:
    left = case.timeline.left_uncleanly(case.pod, case.at_us)
    has_bug = case.timeline.release(case.pod, case.at_us) == "4.3.0"
    return "the release that ran has KAFKA-20663" if has_bug and left is not None else ""


def _locked_by_the_start(case: Case) -> str:
    """Before 4.3.1 the start locks each directory on disk, and only an assignment takes it over.

    That there was none is seen by the looks while that process ran: none of them found the task there.

    Source:
        StateDirectory.initializeStartupStores, removeStartupState and cleanRemovedTasks (4.3.0).
    """
    since_us, until_us = case.timeline.life(case.pod, case.at_us)
    looks = [look.copies for look in case.asked if since_us < look.at_us < until_us]
    tasks = {copy[:2] for copies in looks for copy in copies or ()}
    has_bug = case.timeline.release(case.pod, case.at_us) == "4.3.0"
    is_free = bool(looks) and (case.pod, case.said.task) not in tasks
    return (
        "the release that ran has KAFKA-20663, and its pod was not assigned it" if has_bug and is_free else ""
    )


def _cannot_open(case: Case) -> str:
    """From 4.3 on exactly-once can be refused a task for good after an unclean end; then no look finds it there.

    Source:
        docs/found/enable-transactional.md, docs/found/leaked-segment.md; KAFKA-21034
    """
    since_us, until_us = case.timeline.life(case.pod, case.at_us)
    left = case.timeline.left_uncleanly(case.pod, since_us) is not None
    copies = {x[:2] for look in case.asked if case.at_us <= look.at_us < until_us for x in look.copies or ()}
    stored = numbers(case.timeline.release(case.pod, case.at_us)) >= (4, 3) and case.run.guarantee == EOS
    is_true = stored and left and (case.pod, case.said.task) not in copies
    return "its pod ended uncleanly, and no look of its next life found the task there" if is_true else ""


def _lost_standby(case: Case) -> str:
    has_bug = numbers(case.timeline.release(case.pod, case.at_us)) <= (2, 2, 1)
    has_standbys = int(case.run.settings.get("num.standby.replicas", 0)) > 0
    return (
        "the release that ran has KAFKA-8187: standbys are lost after a rebalance"
        if has_bug and has_standbys
        else ""
    )


def _went_one_too_far(case: Case) -> str:
    """True of the disk; the look finds the record if its key was written again, or its window has expired."""
    upgraded = case.run.guarantee != EOS and _read_one_too_far(case.run, case.timeline, case.pod, case.at_us)
    return "its pod was upgraded in place from 2.5 or earlier" if upgraded else ""


def _moved_often(case: Case) -> str:
    often = case.timeline.changes(case.at_us) >= CHANGES
    return "instances came, went and failed again and again" if often else ""


EXCUSES: dict[str, Callable[[Case], str]] = {
    "stale-eos-checkpoint": _exposed,
    "stale-eos-state": _echo,
    "skipped-eos-wipe": _exposed_and_ended,
    "premature-cleanup": _early_cleaner,
    "resurrected-checkpoint": _half_cleaned,
    "stale-segment-offset": _old_segment,
    "orphaned-task": _locked_by_the_start,
    "skipped-record": _went_one_too_far,
    "missing-standby": _lost_standby,
    "unowned-task": _lost_standby,
    "unprotected-task": _lost_standby,
    "task-churn": _moved_often,
    "torn-store": _torn,
    "store-shrank": _torn_segment,
}
