"""Few rows of each pod and application -> the application as rules see it, and rows of all tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.contract.events import Confidence, Status
from spark_rollup.config import Override
from spark_rollup.fleet import beats, coverage, gaps, holds, lanes, levels, settings, sizes
from spark_rollup.fleet.application import Application, Place, Pod, Pods, Rule, Task
from spark_rollup.fleet.beats import LastWord
from spark_rollup.fleet.judge import judge
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.pods import CUT, TOO_MANY, known_pod
from spark_rollup.fleet.questioned import questioned
from spark_rollup.fleet.rows import Gap, Mark, Reading, Said
from spark_rollup.fleet.thin import OfApplication, OfPod
from spark_rollup.fleet.whereabouts import followed, gone, unnamed

TIMELINES, COVERAGE, PODS, KNOWN_PODS = "timelines", "coverage", "pods", "known_pods"
RELEASES, DISABLED, LOCAL, UNSEEN = "releases", "disabled", "local", "gaps"
"""Tables beside those of `judge`; what `releases`, `disabled`, `local` and `gaps` hold is only shown."""


@dataclass(frozen=True, slots=True)
class Question:
    """What decides what is found."""

    as_of_us: int  # the audit's time
    since_us: int = 0  # when the look-back began; 0 = there is none
    rules: Sequence[Rule] = ()  # those that are asked
    overrides: Sequence[Override] = ()  # `--set`
    ahead: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Clocks that are ahead of all others, by namespace and pod, and how far (microseconds)."""
    proofs: Mapping[Place, list[Row]] | None = None
    """What `verify` found, by namespace and application; None = it was not asked."""
    cut: Mapping[str, str] = field(default_factory=dict)
    """Files that keep the end of what an agent said, with its `namespace/pod`."""


@dataclass(frozen=True, slots=True)
class Story:
    """What is known of a pod: when it was heard and watched, and what its agent says."""

    namespace: str
    pod: Pod
    last: LastWord
    said: list[Said]


def story(where: tuple[str, str], given: OfPod, asked: Question) -> Story | None:
    """Reduce what is known of a pod; None = of its time nothing is."""
    if not given.beats:
        return None
    name, boots = where[1], beats.levels_of(given.beats)
    ids = {
        (x.pod_uid, x.boot_id, x.sequence): list(x.open_ids or ())
        for x in given.events
        if beats.names_open(x)
    }
    counted = [x.counted(ids) for x in boots]
    said = levels.settled(levels.last_words(given.events), filter(None, counted))
    last = beats.last_word(given.beats, asked.since_us)
    unseen = gaps.gaps_of(given.beats, given.torn, given.events, asked.as_of_us, asked.ahead.get(where))
    if "/".join(where) in asked.cut.values():
        unseen.append(Gap(name, None, None, last.last_us, asked.as_of_us, CUT, None))
    pod = Pod(
        name,
        given.applications,
        levels.heard(name, last, boots[-1], counted[-1], said, given.tasks),
        [x for x in unseen if x.to_us >= asked.since_us],
        gaps.merged(name, unseen),
    )
    return Story(where[0], pod, last, said)


def by_namespace(stories: Iterable[Story]) -> Mapping[str, Pods]:
    """Sort pods into namespaces."""
    found: dict[str, dict[str, Pod]] = defaultdict(dict)
    for one in stories:
        found[one.namespace][one.pod.name] = one.pod
    return found


def said_of(stories: Iterable[Story]) -> Mapping[Place, list[Said]]:
    """Sort what agents say into applications."""
    found: dict[Place, list[Said]] = defaultdict(list)
    for one in stories:
        for x in one.said:
            found[one.namespace, x.application_id].append(x)
    return found


def places(pods: Mapping[str, Pods]) -> set[Place]:
    """List what pods name: all of a namespace, their applications, and those of which only blindness is reported."""
    return {
        (namespace, application)
        for namespace, named in pods.items()
        for application in (
            None,
            *(name for pod in named.values() for name in pod.applications),
            *(gap.application_id for pod in named.values() for gap in pod.gaps),
        )
    }


def application(
    place: Place, given: OfApplication, said: Sequence[Said], pods: Pods, asked: Question
) -> tuple[Application, set[str]]:
    """Reduce what is known of an application to what rules see, and say which of its tasks are in question."""
    name, said = place[1], followed(said, given, pods, asked.as_of_us, asked.rules)
    last_us = {pod.name: pod.heard.last_us for pod in pods.values() if pod.heard}
    held = list(holds.holders(given.points, given.marks, last_us, gone(given, pods)))
    is_named = name is not None and any(name in pod.applications for pod in pods.values())
    known = settings.effective(name, given.events, asked.overrides) if name is not None and is_named else None
    local = [x for x in said if x.status == Status.OPEN.value or x.observed_at_us >= asked.since_us]
    tasks = questioned([rule.meta for rule in asked.rules], local, held, given.marks, known)
    app = Application(
        *place, asked.as_of_us, asked.since_us, pods, known,
        lives=list(holds.lives(given.events, held, given.marks, last_us)),
        sightings=given.sightings, said=said,
        proofs=None if asked.proofs is None else asked.proofs.get(place, []), unnamed=unnamed(given, pods),
    )  # fmt: skip
    of_tasks: Mapping[str, Sequence[Any]] = {
        "holds": held,
        "marks": [x for x in given.marks if x.change and (x.change not in holds.FREQUENT or x.task_id in tasks)],
        "readings": [x for x in given.readings if x.task_id in tasks],
        "copies": given.copies, "latest": given.latest, "saved": given.saved,
        "said": [x for x in said if x.task_id is not None],
    }  # fmt: skip
    for name_, rows in of_tasks.items():
        for row in rows:
            getattr(app.task(row.task_id), name_).append(row)
    for task in app.tasks.values():
        task.readings = sizes.folded(task.readings, task.edges) if task.readings else []
    _leave_out(app, [app.task(one) for one in tasks], given.left_out)
    return app, tasks


def _leave_out(app: Application, asked: Sequence[Task], known: Sequence[Gap]) -> None:
    """Leave out the oldest rows of tasks that have too many, and tell it as gaps of these tasks (`known`: by Spark)."""
    most = sizes.most_rows(len(asked))
    found = list(known)
    for task in asked:
        rows: list[Reading | Mark] = [*task.readings, *(x for x in task.marks if x.change in holds.FREQUENT)]
        found += sizes.left_out(rows, most)
    unseen: dict[str, list[Gap]] = defaultdict(list)
    for gap in found:
        unseen[gap.pod].append(gap._replace(application_id=app.name))
        app.task(gap.task_id or "").cut_us = gap.to_us
    for task in asked:
        if (cut_us := task.cut_us) is not None:
            task.readings = [x for x in task.readings if x.at_us > cut_us]
            task.marks = [x for x in task.marks if x.change not in holds.FREQUENT or x.at_us > cut_us]
    for name, own in unseen.items():
        pod = app.pods.get(name, Pod(name))
        unwatched = [*pod.unwatched, *gaps.merged(name, own)]
        app.pods = {**app.pods, name: replace(pod, gaps=[*pod.gaps, *own], unwatched=unwatched)}


def tell(
    app: Application, tasks: set[str], given: OfApplication, asked: Question
) -> Iterator[tuple[str, Row]]:
    """Judge an application: (table, row)."""
    yield from judge(app, asked.rules)
    yield from ((TIMELINES, row) for row in lanes.timelines(app, tasks, given.curve))
    left_out = [x for pod in app.pods.values() for x in pod.gaps if x.cause == TOO_MANY]
    yield from ((TIMELINES, row) for row in lanes.gaps(app.namespace, left_out))
    yield from ((UNSEEN, {"namespace": app.namespace, **x._asdict()}) for x in left_out)
    where = {"namespace": app.namespace, "application_id": app.name}
    yield from ((LOCAL, {"namespace": app.namespace, **x._asdict()}) for x in app.local)
    if app.settings is not None:
        yield RELEASES, where | {"release": app.settings.release, "not_given": list(app.settings.not_given)}
        for pod, detector, reason in app.settings.disabled:
            yield DISABLED, where | {"pod": pod, "detector": detector, "reason": reason}
    held = {
        (x.pod, x.task_id) for task in app.tasks.values() for x in task.holds if x.lasting and not x.cleaner
    }
    for pod, number in Counter(pod for pod, _ in held).items():
        if app.name is not None:
            yield PODS, {"namespace": app.namespace, "pod": pod, "tasks_held": number}


def tell_pods(
    stories: Iterable[Story], held: Mapping[tuple[str, str], int], asked: Question
) -> Iterator[tuple[str, Row]]:
    """Tell what is about pods: (table, row); `held`: how many tasks each holds."""
    for one in stories:
        where, pod = one.namespace, one.pod
        yield COVERAGE, coverage.coverage(where, pod, one.last, asked.as_of_us, asked.since_us)
        number = held.get((where, pod.name), 0)
        yield PODS, coverage.described(where, pod, one.last, number, asked.as_of_us)
        yield KNOWN_PODS, known_pod(where, pod, asked.as_of_us)
        yield from ((TIMELINES, row) for row in lanes.gaps(where, pod.gaps))
        yield from ((UNSEEN, {"namespace": where, **x._asdict()}) for x in pod.gaps)


def tables(
    stories: Sequence[Story], applications: Mapping[Place, OfApplication], asked: Question
) -> Mapping[str, list[Row]]:
    """Tell all there is to tell: rows by table."""
    pods, said, asked = by_namespace(stories), said_of(stories), believing(asked, stories)

    def judged() -> Iterator[tuple[str, Row]]:
        for place in sorted({*places(pods), *applications, *said, *(asked.proofs or ())}, key=str):
            given = applications.get(place) or OfApplication()
            app, tasks = application(place, given, said.get(place, ()), pods.get(place[0], {}), asked)
            yield from tell(app, tasks, given, asked)

    return with_pods(judged(), stories, asked)


def with_pods(
    judged: Iterable[tuple[str, Row]], stories: Iterable[Story], asked: Question
) -> dict[str, list[Row]]:
    """Sort into tables what was told of applications, and tell what is about pods."""
    found: dict[str, list[Row]] = defaultdict(list)
    held: dict[tuple[str, str], int] = Counter()
    for table, row in judged:
        if table == PODS:
            held[row["namespace"], row["pod"]] += row["tasks_held"]
        else:
            found[table].append(row)
    for table, row in tell_pods(stories, held, asked):
        found[table].append(row)
    return found


def believing(asked: Question, stories: Iterable[Story]) -> Question:
    """Take back what `verify` refuted and an agent has confirmed since; what refutes nothing then is left out."""
    if asked.proofs is None:
        return asked
    sure = {
        (one.namespace, x.finding_id) for one in stories for x in one.said if x.confidence == Confidence.CONFIRMED.value
    }  # fmt: skip
    proofs: dict[Place, list[Row]] = defaultdict(list)
    for place, rows in asked.proofs.items():
        for row in rows:
            left = sorted({one for one in row["refutes"] if (place[0], one) not in sure})
            if left or not row["refutes"]:
                proofs[place].append(row | {"refutes": left})
    return replace(asked, proofs=proofs)
