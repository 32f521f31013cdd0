"""What a rule is: stories to judge, innocents by name, proofs in order, and how loud it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar, dataclass_transform

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.inventory.model import Store, Task
from agent.judging.base import (
    AgentCase,
    ApplicationCase,
    Detector,
    DetectorMeta,
    Evidence,
    Remedy,
    TaskCase,
    Upstream,
    Verdict,
)
from agent.judging.changelogs import with_caution
from agent.judging.wording import concerned, most_affected, where

C_co = TypeVar("C_co", bound=AgentCase, covariant=True)
S = TypeVar("S", bound="Story[Any]")


def derived(ask: Callable[[Any], object]) -> Any:
    """In a story: derive what goes into its verdict, once there is one."""
    return property(ask)


@dataclass_transform(frozen_default=True)
class _Fields:
    """To a reader and to mypy a frozen dataclass.

    At run time only the constructor of one: all the methods of seventy classes take a third of the time in which the
    detectors are imported, and a frozen story takes longer to make.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(repr=False, eq=False, match_args=False)(cls)


class Story(_Fields, Generic[C_co]):
    """What a rule judges. It knows its case, so that no function hands the case on beside it.

    A subclass says what happened, in fields and properties; what is here goes into the verdict as it is.
    """

    case: C_co
    # distinguishes episodes of one detector on one task or store
    subject: ClassVar[str] = ""
    opened_at_us: ClassVar[int] = 0  # time of the deciding operation
    place: ClassVar[str] = ""  # where it happened, for people: a path relative to the state directory
    names_store: ClassVar[str | None] = None  # store that the finding is about; None = the whole task
    identity: ClassVar[str | None] = None  # RocksDB IDENTITY of the incarnation concerned
    # keys of issues; empty = those of the meta's that may affect the release
    upstream: ClassVar[tuple[str, ...]] = ()
    affected: ClassVar[Affected] = Affected.POSSIBLY  # whether this release is affected

    @property
    def mechanism(self) -> Mechanism | None:
        """What goes wrong, if it is not what the metadata says."""
        return None


class TaskStory(Story[TaskCase]):
    """A story of one task; `issues` = those that it is about, empty = those of its detector."""

    issues: ClassVar[tuple[Upstream, ...]] = ()
    upstream = derived(lambda x: concerned(x.case, x.issues))
    affected = derived(lambda x: most_affected(x.case, x.issues) if x.issues else Affected.POSSIBLY)
    place = derived(lambda x: x.case.task.path)

    @property
    def task(self) -> Task:
        """The task."""
        return self.case.task


class StoreStory(TaskStory):
    """A story of one store."""

    store: Store
    place = derived(lambda x: where(x.task, x.store))
    identity = derived(lambda x: x.store.identity)

    @property
    def named(self) -> str:
        """The store, for a sentence."""
        return f"Task {self.task.id}: store {self.store.name}"


class NamedStoreStory(StoreStory):
    """A story of one store, of which the verdict gives the name: the others of its task have lives of their own."""

    names_store = derived(lambda x: x.store.name)


class IncarnationStory(NamedStoreStory):
    """A story of one incarnation of a store: whatever shows it, it is found once."""

    subject = derived(lambda x: x.store.identity or "")


@dataclass(frozen=True, slots=True)
class Proof:
    """What shows it, and when and where, if that is not the story's; `certain` = no other life looks like this."""

    why: str
    certain: bool = True
    at_us: int = 0
    place: str = ""


@dataclass(frozen=True, slots=True)
class Loudness:
    """How severe, how sure, and what differs with it; empty = as the metadata says. See `Verdict` for the fields."""

    severity: Severity
    confidence: Confidence
    level: Level | None = None
    next_action: str = ""
    missing_facts: tuple[str, ...] = ()
    lasting: bool = False
    gives_way: bool = True
    remedy: Remedy | None = None


SUSPICION = Loudness(Severity.WARNING, Confidence.SUSPECTED)


def graded(proof: Proof | None, missing_facts: tuple[str, ...] = ()) -> Loudness | None:
    """Critical and confirmed by a certain proof, a warning and suspected by another, and nothing without one."""
    if proof is None:
        return None
    if proof.certain:
        return Loudness(Severity.CRITICAL, Confidence.CONFIRMED, missing_facts=missing_facts)
    return Loudness(Severity.WARNING, Confidence.SUSPECTED, missing_facts=missing_facts)


class Why(StrEnum):
    """Why a rule says nothing: it is harmless, it cannot be told (yet), or nothing shows it."""

    INNOCENT = "harmless"
    UNKNOWN = "unknown"
    UNPROVED = "unproved"


@dataclass(frozen=True, slots=True)
class Silence:
    """That a rule says nothing of a story; `name` is the innocent, or what is not known."""

    why: Why
    name: str


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[S]):
    """One mechanism, as an expert checks it beside the source."""

    name: str = field(kw_only=False)  # what it finds, one line for people
    # look-alikes: name -> whether the story is one; the first that holds ends the judgement
    innocents: Mapping[str, Callable[[S], bool]] = field(default_factory=dict)
    # severity and confidence by proof and role alone; it returns None = without a proof nothing is said.
    # If it is not given: as `graded`, and a suspicion where there are no proofs
    loudness: Callable[[S, Proof | None], Loudness | None] | None = None
    summary: Callable[[S, Proof | None], str]  # one sentence
    evidence: Callable[[S, Proof | None], Iterable[Evidence]]  # ordered chain
    proofs: tuple[Callable[[S], Proof | None], ...] = ()  # the first that holds is the proof; each says why
    # what cannot be told, or not yet: name -> whether it is so; asked after the innocents
    unknowns: Mapping[str, Callable[[S], bool]] = field(default_factory=dict)
    about: type[Story[Any]] = Story  # kind of story that it judges; others are passed over

    def decide(self, story: S) -> Verdict | Silence:
        """Judge a story."""
        for name, holds in self.innocents.items():
            if holds(story):
                return Silence(Why.INNOCENT, name)
        for name, holds in self.unknowns.items():
            if holds(story):
                return Silence(Why.UNKNOWN, name)
        proof = None
        for prove in self.proofs:
            if (proof := prove(story)) is not None:
                break
        if self.loudness is not None:
            loudness = self.loudness(story, proof)
        else:
            loudness = graded(proof) if self.proofs else SUSPICION
        if loudness is None:
            return Silence(Why.UNPROVED, "nothing proves it")
        return Verdict(
            subject=story.subject,
            opened_at_us=story.opened_at_us,
            summary=self.summary(story, proof),
            evidence=tuple(self.evidence(story, proof)),
            severity=loudness.severity,
            confidence=loudness.confidence,
            store=story.names_store,
            identity=story.identity,
            level=loudness.level,
            upstream=story.upstream,
            affected=story.affected,
            missing_facts=loudness.missing_facts,
            mechanism=story.mechanism,
            next_action=loudness.next_action,
            remedy=loudness.remedy,
            lasting=loudness.lasting,
            gives_way=loudness.gives_way,
        )


Heard = Iterable[tuple[Any, Verdict]]
"""(story, verdict), in the order of the stories."""


def everything(heard: Heard) -> Iterator[Verdict]:
    """Keep all verdicts."""
    return (verdict for _, verdict in heard)


def first_of(key: Callable[[Any], object] = lambda _: "") -> Callable[[Heard], Iterator[Verdict]]:
    """Keep the first verdict of the stories with the same key; without a key one for the task."""

    def keep(heard: Heard) -> Iterator[Verdict]:
        known: set[object] = set()
        for story, verdict in heard:
            if (one := key(story)) not in known:
                known.add(one)
                yield verdict

    return keep


def worst_of(key: Callable[[Any], object] = lambda _: "") -> Callable[[Heard], Iterator[Verdict]]:
    """Keep the most severe verdict of the stories with the same key (else of the task), the first of equals."""

    def keep(heard: Heard) -> Iterator[Verdict]:
        worst: dict[object, Verdict] = {}
        for story, verdict in heard:
            if verdict.severity.rank > worst.setdefault(key(story), verdict).severity.rank:
                worst[key(story)] = verdict
        yield from worst.values()

    return keep


@dataclass(frozen=True)
class Docket(Generic[S]):
    """Stories and the rules that judge them."""

    stories: Callable[[Any], Iterable[S]]  # lists what there is to judge in a case
    rules: tuple[Rule[Any], ...]  # the first that speaks of a story is heard
    keep: Callable[[Heard], Iterable[Verdict]] = everything  # which verdicts are kept

    def heard(self, case: AgentCase) -> list[tuple[S, Verdict]]:
        """Judge every story of a case."""
        found = []
        for story in self.stories(case):
            for rule in self.rules:
                if isinstance(story, rule.about) and isinstance(decision := rule.decide(story), Verdict):
                    found.append((story, decision))
                    break
        return found

    def decisions(self, case: AgentCase) -> Iterator[tuple[S, Rule[Any], Verdict | Silence]]:
        """List what every rule says of every story, for `explain --why-not`."""
        for story in self.stories(case):
            for rule in self.rules:
                if isinstance(story, rule.about):
                    yield story, rule, rule.decide(story)


def detector(
    meta: DetectorMeta, *dockets: Docket[Any], keep: Callable[[Heard], Iterable[Verdict]] | None = None
) -> Detector:
    """Make a detector of rules, silent where its metadata says so; `keep`: chooses among those of all dockets."""
    may_be_silent = meta.exactly_once is not None or bool(meta.silent_where)

    def judge(case: AgentCase) -> list[Verdict]:
        found: list[Verdict] = []
        if may_be_silent and isinstance(case, ApplicationCase) and case.is_silent(meta):
            return found
        every: list[tuple[Any, Verdict]] = []
        for docket in dockets:
            if heard := docket.heard(case):
                every += heard
                found += docket.keep(heard) if keep is None else ()
        if keep is not None and every:
            found += keep(every)
        return [with_caution(case, meta, x) for x in found] if found and isinstance(case, TaskCase) else found

    return Detector(meta, judge, dockets)
