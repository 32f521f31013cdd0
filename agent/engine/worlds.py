"""Possible worlds: what would be said under each setting that was not given, and which question decides.

A setting that nobody gave is no hole but a small set of values, cut down by what disk shows. A task of which nothing
would be said in any world is well; what would be said in some of them is a decision, and one or two settings make it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import combinations, product

from agent.contract.events import Severity
from agent.contract.finding import Finding
from agent.contract.incidents import gather
from agent.engine.detector_runner import DetectorRunner, JudgementContext
from agent.engine.profiles import Profiles
from agent.engine.unchanged import Silence, Unchanged
from agent.findings.ledger import Ledger
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import TRIED, ApplicationSettings, Setting, SettingsBook
from agent.judging.base import Detector, Scope
from agent.judging.decision import ASKED, GUARANTEE, RELEASE, STANDBYS, TRANSACTIONAL, Branch, Decision
from agent.judging.writers import before_4_3
from agent.layout.facts import FACTS
from agent.layout.profile import Profile, Truth
from agent.layout.releases import ReleaseRange, possible_releases

_VALUES: Mapping[str, tuple[str, ...]] = {
    GUARANTEE: ("exactly_once_v2", "at_least_once"),
    STANDBYS: ("0", "1"),
    TRANSACTIONAL: ("true", "false"),
}
MOST_TASKS = 20
"""Suspicious tasks of an application that are judged in every world at most; the others are counted."""
FEW_WORLDS = 4
MOST_AT_ONCE = 500
"""One reading judges each task in every world where these are few, or so many tasks; else in some (`partly`)."""

World = Mapping[str, str]
"""Setting that was not given -> the value that holds in this world."""

Outcome = frozenset[tuple[str, str, str]]
"""(task, detector, severity) of everything that is a warning or more."""


def worlds(settings: ApplicationSettings, profile: Profile, issues: Iterable[ReleaseRange]) -> list[World]:
    """List the worlds that are possible.

    Args:
        settings: What was given.
        profile: Which releases disk allows, and whether stores are transactional.
        issues: Releases with a bug; between their ends nothing changes.
    """
    unknown = {name: values for name, values in _VALUES.items() if not settings.is_configured(name)}
    if profile.transactional is not Truth.MAYBE:
        unknown.pop(TRANSACTIONAL, None)
    if not profile.is_exact:  # of `4.1` the patch is not given
        unknown[RELEASE] = tuple(str(x.low) for x in stretches(profile.range, frozenset(issues)))
    names = [name for name in ASKED if name in unknown]
    return [dict(zip(names, values, strict=True)) for values in product(*(unknown[name] for name in names))]


@lru_cache(maxsize=64)
def stretches(known: ReleaseRange, issues: frozenset[ReleaseRange]) -> tuple[ReleaseRange, ...]:
    """Cut a range where a fact or a bug begins or ends: within each stretch one release is as good as another."""
    rows = [*(one for row in FACTS.values() for one in (*row.holds, *row.unsure)), *issues]
    found: list[ReleaseRange] = []
    before: list[bool] | None = None
    for release in possible_releases(known):
        holds = [one.contains(release) for one in rows]
        found[-1:] = (
            [ReleaseRange(found[-1].low, release)]
            if holds == before
            else [*found[-1:], ReleaseRange(release, release)]
        )
        before = holds
    return tuple(found)


def _written_by(application: Application, profile: Profile) -> Profile:
    """Cut the releases down to those before 4.3 where no store keeps its offset itself: no later one has run there."""
    is_plain = application.plain_us and not application.offsets_family_us
    return before_4_3(profile) if is_plain else profile


class Worlds:
    """Judges tasks in every world that is possible, and keeps what is undecided."""

    def __init__(
        self,
        inventory: Inventory,
        settings: SettingsBook,
        detectors: Sequence[Detector],
        on_fault: Callable[[str, Exception], None],
        unchanged: Unchanged,
    ) -> None:
        """Judge with these detectors what an inventory has.

        `on_fault` takes (detector id, exception); `unchanged`: who said nothing of a task by what was given.
        """
        self._unchanged = unchanged
        self._at_once = False  # one reading: no task is judged in a world again
        self._runners: dict[tuple[object, ...], DetectorRunner] = {}
        self._on_fault = on_fault
        self._inventory = inventory
        self._settings = settings
        self._detectors = [x for x in detectors if x.meta.scope is Scope.TASK]
        self._issues = [one for x in detectors for issue in x.meta.upstream for one in issue.releases]
        self._suspects: dict[str, dict[str, Task]] = {}
        self._decisions: dict[str, Decision] = {}
        self._known: dict[str, tuple[Profile, list[World], list[World]]] = {}
        self._tried: dict[str, int] = {}  # path of a task -> how often it was tried
        self._decided: set[str] = set()  # applications of which every task has been tried
        self.partly: set[str] = set()  # applications of one reading that were not judged in every world

    def decision(self, application_id: str) -> Decision | None:
        """Return what was undecided of an application when it was decided last."""
        return self._decisions.get(application_id)

    def is_decided(self, application_id: str) -> bool:
        """Return whether every task has been tried: before that a question of an earlier run is not closed."""
        return application_id in self._decided

    def decisions(self) -> list[Decision]:
        """List what is undecided."""
        return list(self._decisions.values())

    def reconsider(
        self, application: Application, task: Task, known: JudgementContext, now_us: int, *, at_once: bool
    ) -> None:
        """Note whether anything may be wrong with a task in some world: `decide` judges those only.

        An agent tries the two guarantees each time, and of the other worlds one after the other; `at_once`: all now.
        """
        self._at_once = at_once
        suspects = self._suspects.setdefault(application.id, {})
        possible, guarantees = self._possible(application, known.profile)
        if not task.exists:
            suspects.pop(task.id, None)
            self._tried.pop(task.path, None)
            return
        nth = self._tried[task.path] = self._tried.get(task.path, -1) + 1
        if len(possible) < 2:
            suspects.pop(task.id, None)
            return
        if task.id in suspects:
            return  # until `decide` finds nothing of it in any world
        if at_once and (len(application.tasks) <= MOST_AT_ONCE or len(possible) <= FEW_WORLDS):
            tried = possible
        else:
            if at_once:
                self.partly.add(application.id)
            tried = [*guarantees, possible[nth % len(possible)]]
        silence = self._unchanged.silence(task.path, known.around, known.profile)
        if any(self._findings(application, [task], world, now_us, known, silence) for world in tried):
            suspects[task.id] = task

    def _possible(self, application: Application, profile: Profile) -> tuple[list[World], list[World]]:
        """Give the worlds that are possible, and those of them that say no more than the guarantee."""
        known = self._known.get(application.id)
        if known is None or known[0] is not profile:
            found = worlds(self._settings.of(application.id), _written_by(application, profile), self._issues)
            said = {tuple((k, v) for k, v in world.items() if k == GUARANTEE) for world in found}
            known = self._known[application.id] = profile, found, [*map(dict, sorted(said))]
        return known[1:]

    def decide(self, application: Application, known: JudgementContext, now_us: int) -> Decision | None:
        """Judge the suspicious tasks of an application in every world; None = every world says the same."""
        if all(task.path in self._tried for task in application.tasks.values() if task.exists):
            self._decided.add(application.id)
        decision = self._decide(application, known, now_us)
        if decision is None:
            self._decisions.pop(application.id, None)
        else:
            self._decisions[application.id] = decision
        return decision

    def _decide(self, application: Application, known: JudgementContext, now_us: int) -> Decision | None:
        suspects = list(self._suspects.get(application.id, {}).values())
        if not suspects:
            return None
        profile, said, asked = known.profile, [], suspects[:MOST_TASKS]
        for world in self._possible(application, profile)[0]:
            found = self._findings(application, asked, world, now_us, known)
            if found is not None:
                said.append((world, _outcome(found), found))
        outcomes = [outcome for _, outcome, _ in said]
        spoken = {task for outcome in outcomes for task, _, _ in outcome}
        for task in asked:
            if task.id not in spoken:
                del self._suspects[application.id][task.id]
        if len(set(outcomes)) < 2:
            return None
        always = frozenset.intersection(*outcomes)
        question, left_open = _question([(world, outcome) for world, outcome, _ in said])
        texts = {str(x.low): x for x in stretches(profile.range, frozenset(self._issues))}
        return Decision(
            application.id,
            question,
            tuple(_branches(question, said, always, texts)),
            min((_worst(x) for x in outcomes), key=lambda x: -1 if x is None else x.rank),
            sure=left_open == 0,
            unasked=len(suspects) - len(asked),
        )

    def _findings(
        self,
        application: Application,
        tasks: Sequence[Task],
        world: World,
        now_us: int,
        known: JudgementContext,
        silence: Silence | None = None,
    ) -> list[Finding] | None:
        """List what is a warning or more in a world; None = disk shows that this world is none.

        `silence`: who said nothing just now by what was given. What was asked once of the inventory holds in every
        world: of ten thousand tasks each would ask for all again.
        """
        key = (application.id, *world.items())
        runner = self._runner(key, application, world)
        if RELEASE in world and runner.profiles.of(application).conflicts:
            return None
        runner.ledger = Ledger()
        runner.ledger.read_once_us = now_us
        batch = known.in_worlds.setdefault(key, {})
        here = runner.know(application, batch)
        here.answers = known.answers
        settled: Set[str] = frozenset()
        if silence is not None:
            settled = silence.same if here.profile is known.profile else silence.elsewhere
        for task in tasks:
            runner.judge_task(now_us, application, task, batch, settled)
        return [x for x in runner.ledger.findings() if x.severity is not Severity.INFO]

    def _runner(self, key: tuple[object, ...], application: Application, world: World) -> DetectorRunner:
        """Give who judges in a world; `key` is its own."""
        if key not in self._runners:
            assumed = {name: Setting(value, TRIED) for name, value in world.items()}
            given = self._settings.of(application.id).values
            book = SettingsBook(own={application.id: {**given, **assumed}})
            unchanged = None if self._at_once else Unchanged(self._unchanged.readings)
            self._runners[key] = DetectorRunner(
                self._detectors, self._inventory, book, Profiles(book), Ledger(), lambda finding, at_us: None,
                self._on_fault, lambda: 0.0, unchanged,
            )  # fmt: skip
        return self._runners[key]


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.task_id or "", finding.detector, finding.severity.value


def _outcome(findings: Iterable[Finding]) -> Outcome:
    return frozenset(map(_key, findings))


def _worst(outcome: Outcome) -> Severity | None:
    return max((Severity(x) for _, _, x in outcome), key=lambda x: x.rank, default=None)


def _question(said: Sequence[tuple[World, Outcome]]) -> tuple[tuple[str, ...], int]:
    """Choose one setting that decides, else the two that leave least open; return it, and how much it leaves open."""
    names = [name for name in ASKED if name in said[0][0]]

    def left_open(question: tuple[str, ...]) -> int:
        groups: dict[tuple[str, ...], set[Outcome]] = {}
        for world, outcome in said:
            groups.setdefault(tuple(world[name] for name in question), set()).add(outcome)
        return sum(len(outcomes) - 1 for outcomes in groups.values())

    single = min(((name,) for name in names), key=left_open)
    if left_open(single) == 0 or len(names) < 2:
        return single, left_open(single)
    pair = min(combinations(names, 2), key=left_open)
    return tuple(sorted(pair, key=lambda name: left_open((name,)))), left_open(pair)


def _branches(
    question: tuple[str, ...],
    said: Sequence[tuple[World, Outcome, list[Finding]]],
    always: Outcome,
    releases: Mapping[str, ReleaseRange],
) -> Iterator[Branch]:
    """Join the answers under which the same is wrong, the worst first; of an answer that leaves it open, the worst."""
    worst: dict[tuple[str, ...], tuple[Outcome, list[Finding]]] = {}
    for world, outcome, findings in said:
        answer = tuple(world[name] for name in question)
        if answer not in worst or _weight(outcome) > _weight(worst[answer][0]):
            worst[answer] = outcome, findings
    joined: dict[Outcome, tuple[list[tuple[str, ...]], list[Finding]]] = {}
    for answer, (outcome, findings) in worst.items():
        joined.setdefault(outcome, ([], findings))[0].append(answer)
    for outcome in sorted(joined, key=_weight, reverse=True):
        answers, findings = joined[outcome]
        incidents = gather(x for x in findings if _key(x) not in always)
        yield Branch(tuple(_in_words(question, answers, worst, releases)), tuple(incidents))


def _in_words(
    question: tuple[str, ...],
    answers: Sequence[tuple[str, ...]],
    all_answers: Iterable[tuple[str, ...]],
    releases: Mapping[str, ReleaseRange],
) -> Iterator[str]:
    """Write the answers, one setting after the other; nothing where every value leads here."""
    for i, name in enumerate(question):
        values = list(dict.fromkeys(x[i] for x in answers))
        every = list(dict.fromkeys(x[i] for x in all_answers))
        if len(values) == len(every):
            continue
        if name != RELEASE:
            yield " or ".join(_WORDS[name, x] for x in values)
            continue
        runs: list[ReleaseRange] = []  # releases that follow each other are a range
        for at, value in enumerate(every):
            if value in values and at and every[at - 1] in values:
                runs[-1] = ReleaseRange(runs[-1].low, releases[value].high)
            elif value in values:
                runs.append(releases[value])
        yield f"on Kafka Streams {' or '.join(map(str, runs))}"


_WORDS = {
    (GUARANTEE, "exactly_once_v2"): "exactly-once",
    (GUARANTEE, "at_least_once"): "at-least-once",
    (STANDBYS, "0"): "without standbys",
    (STANDBYS, "1"): "with standbys",
    (TRANSACTIONAL, "true"): "with transactional stores",
    (TRANSACTIONAL, "false"): "without transactional stores",
}


def _weight(outcome: Outcome) -> tuple[int, int]:
    worst = _worst(outcome)
    return (-1 if worst is None else worst.rank), len(outcome)
