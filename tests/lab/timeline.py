"""A run's timeline, read pod by pod: what ran, what ended uncleanly, which step was about whom. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.lab.design import Run, Step
from tests.lab.said import Said

Marks = Sequence[tuple[int, str]]
MS_US = 1000
SECOND_US = 1_000_000
NEVER_US = 1 << 62
SESSION_MS = 3000
"""The broker's, where the application does not say."""
_ENDS = re.compile(r"is killed|has failed, an exception|fail-commit: |poison \d+: ")
_CHANGES = re.compile(r"starts |closes$|thread (add|remove): ")
_CLOCK = re.compile(r"the clock of (\w+)'s agents is (-?\d+) s off")
_REPLACING = {"snapshot": ("pod",), "swap": ("pod", "other"), "clone": ("other",)}
"""Steps after which a pod starts on another volume, by whom they name."""
_STREAM_TIME = re.compile(r"\d+ records sent, stream time \d+ s, (\d+) ms")
_SENT = re.compile(r"(\d+) records sent")
_OF_RULE = re.compile(r" of (\w+)-(?:un)?told$")


@dataclass(frozen=True, slots=True)
class Done:
    """A step that did something."""

    at_us: int
    step: Step
    pods: frozenset[str]  # whom it was about; none named: everybody

    def concerns(self, pods: frozenset[str]) -> bool:
        """Tell whether it was about one of these pods; no pods are any."""
        return not (self.pods and pods) or bool(self.pods & pods)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which copies a look has compared."""

    at_us: int
    # Pod, task and store of each; None: the release cannot be asked, only the active stores were compared
    copies: frozenset[tuple[str, str, str]] | None


class Timeline:
    """What the marks of a run tell."""

    def __init__(self, run: Run, marks: Marks) -> None:
        self._run = run
        self._marks = marks
        self._session_us = int(run.settings.get("session.timeout.ms") or SESSION_MS) * MS_US
        self.done = tuple(self._done())
        self.looks = tuple(at_us for at_us, what in marks if what.startswith("truth: "))
        """When every store was compared."""

    def before(self, said: Said) -> tuple[Done, ...]:
        """Give the steps before a word that were about its pods."""
        at_us, pods = self.when(said), pods_of(said)
        return tuple(done for done in self.done if done.at_us <= at_us and done.concerns(pods))

    def when(self, said: Said) -> int:
        """Give the true time of a word, microseconds; the latest possible one where an agent's clock was wrong."""
        found = [(when_us, _CLOCK.fullmatch(what)) for when_us, what in self._marks]
        steps = [
            (when_us, int(match[2]) * SECOND_US)
            for when_us, match in found
            if match and match[1] in pods_of(said)
        ]
        if not steps:
            return said.opened_at_us
        possible = self._possible([(self._marks[0][0], 0), *steps], said.opened_at_us)
        return max(possible, default=self._marks[-1][0])

    @staticmethod
    def _possible(steps: Sequence[tuple[int, int]], at_us: int) -> Iterator[int]:
        """Give the true times that a clock can have shown so, of a clock that was set wrong now and then."""
        for (since_us, by_us), (until_us, _) in zip(steps, [*steps[1:], (NEVER_US, 0)], strict=True):
            if since_us <= at_us - by_us < until_us:
                yield at_us - by_us

    def release(self, pod: str, at_us: int) -> str:
        """Tell which release a pod ran at a time, or ran last."""
        started = [release for when_us, release in self._starts(pod) if when_us <= at_us]
        return started[-1] if started else self._run.release

    def life(self, pod: str, at_us: int) -> tuple[int, int]:
        """Tell from when to when the process of a pod ran that ran at a time."""
        starts = [when_us for when_us, _ in self._starts(pod)]
        since_us = max((x for x in starts if x <= at_us), default=0)
        return since_us, min((x for x in starts if x > at_us), default=NEVER_US)

    def is_replaced(self, pod: str, at_us: int) -> bool:
        """Tell whether the volume that a pod had at a time was taken from it before anybody looked again."""
        for done, until_us in zip(self.done, [*(x.at_us for x in self.done[1:]), NEVER_US], strict=False):
            whose = [done.step.args[key] for key in _REPLACING.get(done.step.action, ())]
            if pod in whose and done.at_us <= at_us < until_us:
                return any(at_us < when_us < until_us for when_us, _ in self._starts(pod))
        return False

    def ended_clean(self, pod: str, at_us: int) -> bool:
        """Tell whether the first life of a pod that begins after a time ended in order."""
        return self.closes_next(pod, min((x for x, _ in self._starts(pod) if x > at_us), default=at_us))

    def closes_next(self, pod: str, at_us: int) -> bool:
        """Tell whether the next end of a pod after a time is an orderly one."""
        unclean = (x for x in self.unclean(pod, NEVER_US) if x > at_us)
        closed = (x for x, what in self._marks if x > at_us and what == f"{pod} closed")
        return min(closed, default=NEVER_US) < min(unclean, default=NEVER_US)

    def closed_since_upgrade(self, pod: str) -> bool:
        """Tell whether the first life of a pod on another release than its first one ended in order."""
        starts = self._starts(pod)
        last_old_us = max((x for x, release in starts if release == starts[0][1]), default=0)
        return self.ended_clean(pod, last_old_us) and last_old_us < starts[-1][0] if starts else False

    def stream_ms(self, at_us: int) -> int | None:
        """Tell how far stream time had come at a time, milliseconds; None = nothing was sent, or it is not known."""
        found = [_STREAM_TIME.fullmatch(what) for when_us, what in self._marks if when_us <= at_us]
        return max((int(match[1]) for match in found if match), default=None)

    def started(self, until_us: int) -> frozenset[str]:
        """Name the pods that ran up to a time."""
        begun = (what for at_us, what in self._marks if at_us <= until_us and " starts " in what)
        return frozenset(what.partition(" ")[0] for what in begun)

    def first_start(self, pod: str) -> int:
        """Tell when a pod first ran, microseconds."""
        return next((at_us for at_us, _ in self._starts(pod)), 0)

    def _starts(self, pod: str) -> list[tuple[int, str]]:
        """Give when a pod started, and with which release."""
        begun = f"{pod} starts "
        return [(at_us, what.removeprefix(begun)) for at_us, what in self._marks if what.startswith(begun)]

    def unclean(self, pod: str, until_us: int) -> list[int]:
        """Give the times at which a pod, or what it was working on, ended uncleanly; shorter pauses end nothing."""
        begun = f"{pod} "
        ends = [
            at_us
            for at_us, what in self._marks
            if at_us <= until_us and what.startswith(begun) and _ENDS.match(what.removeprefix(begun))
        ]
        return sorted([*ends, *(ended_us for _, ended_us in self.pauses(pod, until_us))])

    def corruptions(self, pod: str, until_us: int) -> list[int]:
        """Give the times at which a commit of a pod timed out, or may have: its tasks are corrupted then."""
        failed = f"{pod} fail-commit: "
        ends = [at_us for at_us, what in self._marks if at_us <= until_us and what.startswith(failed)]
        return sorted([*ends, *(ended_us for _, ended_us in self.pauses(pod, until_us))])

    def pauses(self, pod: str, until_us: int) -> list[tuple[int, int]]:
        """Give from when to when a pod, or the broker, was away for longer than a session, if it came back."""
        frozen_us = 0
        found = []
        for at_us, what in self._marks:
            if what == f"{pod} is frozen":
                frozen_us = at_us
            if what == f"{pod} goes on" and at_us - frozen_us >= self._session_us:
                found.append((frozen_us, at_us))
            elif what == "the broker goes on" and self._was_long(at_us):
                found.append(
                    (max((done.at_us for done in self.done if done.at_us <= at_us), default=0), at_us)
                )
        return [(begun_us, ended_us) for begun_us, ended_us in found if ended_us <= until_us]

    def sent_around(self, pause: tuple[int, int]) -> int:
        """Count records of a partition that were not committed before a pause, or came until the next poll after it."""
        begun_us, ended_us = pause
        settled_us = max((x for x, what in self._marks if x <= begun_us and what == "committed"), default=0)
        between = (what for x, what in self._marks if settled_us <= x <= ended_us + self._session_us)
        return sum(int(match[1]) for match in map(_SENT.match, between) if match)

    def left_uncleanly(self, pod: str, at_us: int) -> int | None:
        """Give the time of a pod's last unclean end, unless it has closed in order since."""
        ends = self.unclean(pod, at_us)
        closed = [when_us for when_us, what in self._marks if when_us <= at_us and what == f"{pod} closed"]
        return ends[-1] if ends and ends[-1] > max(closed, default=0) else None

    def changes(self, until_us: int) -> int:
        """Count what can have made tasks move: starts, closes, unclean ends and threads of any pod."""
        moved = {at_us for pod in self.started(NEVER_US) for at_us in self.unclean(pod, until_us)}
        return len(moved) + sum(
            at_us <= until_us and bool(_CHANGES.match(what.partition(" ")[2])) for at_us, what in self._marks
        )

    def _was_long(self, at_us: int) -> bool:
        """Tell whether the broker was away for longer than sessions last, or was another one afterwards."""
        last = [done.step for done in self.done if done.at_us <= at_us][-1:]
        return not last or int(last[0].args.get("for_ms", self._session_us)) * MS_US >= self._session_us

    def _done(self) -> Iterator[Done]:
        """Read the steps; one that is followed by the next at once was left out."""
        for (at_us, what), (_, then) in zip(self._marks, [*self._marks[1:], (0, "")], strict=False):
            if what.startswith("step ") and not then.startswith("step "):
                action, *words = what.removeprefix("step ").split()
                args: Mapping[str, str] = dict(word.partition("=")[::2] for word in words)
                pods = frozenset(args[key] for key in ("pod", "other") if key in args)
                yield Done(at_us, Step(action, args), pods)


def pods_of(said: Said) -> frozenset[str]:
    """Tell about which pods a word is; none: about any."""
    if not said.agent.startswith("rollup-"):
        return frozenset({said.agent.partition("-")[0]})
    match = _OF_RULE.search(said.summary)
    return frozenset({match[1]}) if match else frozenset()
