"""Which layout facts hold for which Kafka Streams release, and which releases the evidence allows.

The table `FACTS` is the only place that knows release numbers of layout behaviour; detectors ask
`Profile.says(Fact.X)` and get yes, no or maybe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from agent.contract.events import Affected
from agent.layout.facts import FACTS, Fact
from agent.layout.releases import (
    ANY_RELEASE,
    LATEST,
    Release,
    ReleaseRange,
    is_later_than_known,
    releases_with_rocksdb,
)

_OFFSETS_FAMILY = "the column family `offsets`"


class Truth(StrEnum):
    """Answer of a profile: every allowed release says so, none does, or it is unknown."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen that points to the release."""

    # from the newest `OPTIONS-*` of each database; give only those that the latest process wrote, older files point
    # to an older release
    rocksdb_versions: frozenset[str] = frozenset()
    offsets_family: bool = False  # A database has the column family `offsets`
    plain: bool = False  # it is about stores without that family
    task_lock_held: bool = False  # A task's own `.lock` was held
    # the application directory has the process file and its `.lock`; False = stores are open and it has none; None =
    # not known
    process_file: bool | None = None
    position_files: bool = False  # A `<store>.position` file is there
    process_version: str | None = None  # from the jar that a visible process holds open
    operator: str | None = None  # what the operator says: `4.2.1`, or `4.2` for any patch
    # what the operator says of `enable.transactional.statestores`; None = nothing
    transactional_stores: bool | None = None
    # whether the newest offset on disk is of a transactional store; None = it does not show
    seen_transactional: bool | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """The releases that may have written an application's directory."""

    range: ReleaseRange = ANY_RELEASE  # all that the evidence allows
    conflicts: tuple[str, ...] = ()  # sentences: what disagrees with what on disk; empty = nothing does
    # sentences: weaker disagreements (the RocksDB version, which users may replace)
    doubts: tuple[str, ...] = ()
    # Stores have the column family `offsets`, and this release, which runs or is configured, cannot open them; None =
    # nothing says so
    unopenable: ReleaseRange | None = None
    # whether the application runs with transactional stores: configured, else seen on disk
    transactional: Truth = Truth.NO
    # Answers that were given already: detectors ask the same few questions at every judgement.
    _facts: dict[Fact, Truth] = field(default_factory=dict, init=False, repr=False, compare=False)
    _issues: dict[int, tuple[tuple[ReleaseRange, ...], Affected]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def is_exact(self) -> bool:
        """Whether only one release is possible."""
        return self.range.low is not None and self.range.low == self.range.high

    def says(self, fact: Fact) -> Truth:
        """Return whether a fact holds for the releases of this profile, and for its stores."""
        answer = self._facts.get(fact)
        if answer is None:
            answer = self._facts[fact] = self._says(fact)
        return answer

    def _says(self, fact: Fact) -> Truth:
        row = FACTS[fact]
        if row.not_transactional and self.transactional is Truth.YES:
            return Truth.NO
        if self.range.within(*row.holds):
            is_sure = not row.not_transactional or self.transactional is Truth.NO
            return Truth.YES if is_sure else Truth.MAYBE
        if any(self.range.overlaps(one) for one in (*row.holds, *row.unsure)):
            return Truth.MAYBE
        return Truth.NO

    def affected(self, ranges: tuple[ReleaseRange, ...]) -> Affected:
        """Return whether an issue with these affected releases concerns this directory.

        While pieces of evidence disagree, and of a release that is later than the tables, the answer is at most
        `possibly`.
        """
        known = self._issues.get(id(ranges))  # kept with its answer, so that the id stays its own
        if known is not None:
            return known[1]
        answer = affected(self.range, ranges)
        is_unsure = self.conflicts or self.doubts or is_later_than_known(self.range)
        if answer is Affected.YES and is_unsure:
            answer = Affected.POSSIBLY
        self._issues[id(ranges)] = (ranges, answer)
        return answer


def affected(known: ReleaseRange, affected_ranges: tuple[ReleaseRange, ...]) -> Affected:
    """Compare the releases that are possible with those that an issue affects."""
    if known.within(*affected_ranges):
        return Affected.YES
    if any(known.overlaps(one) for one in affected_ranges):
        return Affected.POSSIBLY
    return Affected.NO


@lru_cache(maxsize=64)  # possible worlds have the same few: of those with the same releases one object
def infer(evidence: Evidence) -> Profile:
    """Compute the profile of an application; ValueError if the operator's release cannot be parsed.

    A release that is known exactly (a visible process, else the operator) decides the range; traces on disk
    that exclude it are conflicts. Otherwise the traces are intersected; a RocksDB version that does not fit
    the harder traces is only a doubt, because users may replace the library.
    """
    traces = _traces(evidence)
    shipped = _shipped(evidence.rocksdb_versions)
    stated = _stated(evidence)
    conflicts: list[str] = []
    doubts: list[str] = []
    known, unopenable = ANY_RELEASE, None
    for what, one in (*stated, *traces):
        narrowed = known.intersect(one)
        if narrowed is None:
            conflicts.append(f"{what} means {one}, but the rest means {known}")
            unopenable = known if what == _OFFSETS_FAMILY else unopenable
        else:
            known = narrowed
    if shipped is not None and not (is_later_than_known(known) and shipped.contains(LATEST)):
        narrowed = known.intersect(shipped)
        if narrowed is None:
            doubts.append(f"the RocksDB version means {shipped}, but the rest means {known}")
        else:
            known = narrowed
    return Profile(known, tuple(conflicts), tuple(doubts), unopenable, _transactional(known, evidence))


def _transactional(known: ReleaseRange, evidence: Evidence) -> Truth:
    wanted = evidence.transactional_stores
    if wanted and evidence.process_version is None and evidence.operator is None:
        return Truth.YES  # whatever release wrote the disk: the next start has the setting
    if not any(known.overlaps(one) for one in FACTS[Fact.TRANSACTIONAL_STORES].holds):
        return Truth.NO
    said = evidence.seen_transactional if wanted is None else wanted
    return Truth.MAYBE if said is None else Truth.YES if said else Truth.NO


def _stated(evidence: Evidence) -> list[tuple[str, ReleaseRange]]:
    stated: list[tuple[str, ReleaseRange]] = []
    if evidence.process_version is not None:
        try:
            release = Release.parse(evidence.process_version)
            stated.append(("the running process", ReleaseRange(release, release)))
        except ValueError:
            pass  # a vendor's build: its number says nothing about the Apache release
    if evidence.operator is not None:
        stated.append(("the configured release", ReleaseRange.of(evidence.operator)))
    return stated


def _traces(evidence: Evidence) -> list[tuple[str, ReleaseRange]]:
    has_file = evidence.process_file
    rows = (
        (evidence.offsets_family, _OFFSETS_FAMILY, FACTS[Fact.OFFSETS_IN_STORE].holds[0]),
        (evidence.plain, "stores without the column family `offsets`", FACTS[Fact.CHECKPOINT_FILE].holds[0]),
        (evidence.task_lock_held, "a held task `.lock`", FACTS[Fact.TASK_LOCK].holds[0]),
        # 2.7.0 is inside and has none: a range cannot say so
        (has_file is True, "the process file", ReleaseRange.since("2.6.2")),
        (has_file is False, "open stores without a process file", ReleaseRange.until("2.7.0")),
        # 4.3 leaves the files of its predecessor behind, so they give no upper end
        (evidence.position_files, "a position file", ReleaseRange.since("3.2.0")),
    )
    return [(what, releases) for is_there, what, releases in rows if is_there]


def _shipped(versions: frozenset[str]) -> ReleaseRange | None:
    shipped: ReleaseRange | None = None
    for version in sorted(versions):
        one = releases_with_rocksdb(version)
        if one is None:
            return None  # the library was replaced: the others say nothing either
        shipped = one if shipped is None else shipped.hull(one)
    return shipped
