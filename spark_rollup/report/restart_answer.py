"""May this pod be restarted: rows of the table `restarts` -> the answer in lines, and by exit code for a rollout.

Without Spark: what the last audit wrote is answered from, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.contract.audited import FleetIncident
from agent.contract.codec import moment
from agent.contract.events import Severity, Status
from agent.contract.exit_codes import Exit
from agent.contract.exit_codes import answer as code_of
from spark_rollup.errors import UsageError
from spark_rollup.fleet.answers import CLEAN_ONLY, DAMAGED, KEEP, NOT_RUNNING, RESTORE, SAFE, UNKNOWN
from spark_rollup.report import unread
from spark_rollup.report.story import pod_name, size, some, texts

Row = Mapping[str, object]

ANSWERS = {
    SAFE: "a healthy, recent copy is held elsewhere",
    NOT_RUNNING: "no process holds it there; a start does not affect the others",
    RESTORE: "no other copy: the task will be rebuilt from the changelog, or wait for this pod",
    UNKNOWN: "this copy or the other one may be damaged, or is not watched",
    KEEP: "the only healthy copy; the others are damaged or far behind: repair those first",
    CLEAN_ONLY: "OK to restart gracefully; a SIGKILL would leave uncommitted records behind (KAFKA-20685)",
    DAMAGED: "open critical finding: do its next step first; a restart may make the damage permanent",
}
"""What each answer means; from harmless to dangerous. A pod's answer is the worst of its tasks'."""

FIRST = "first"  # label of the step that comes before a restart
HARMLESS = (SAFE, NOT_RUNNING)

_WORST = list(ANSWERS)

UNVERIFIED = "without results of `verify` (give --verified DIR to the audit, or here with --input)"
"""Said where an answer rests on the agents' events alone."""

_UNITS = ((172_800, 86_400, "d"), (7_200, 3_600, "h"), (120, 60, "min"), (0, 1, "s"))


@dataclass(frozen=True, slots=True)
class Known:
    """What an audit knows about restarts."""

    restarts: Sequence[Row]  # rows of `RESTARTS`, by namespace, pod, application and task
    pods: Sequence[Row]  # rows of `fleet.pods.known_pod`
    disabled: Sequence[Row] = ()  # namespace, pod and detector of what is not looked for
    as_of_us: int = 0  # the audit's time, microseconds since the epoch
    verified: bool = True  # whether the rows take what `verify` found into account; if not, a line says so
    unread: Mapping[str, int] = field(default_factory=dict)  # see `unread.in_words`
    unfinished: Mapping[str, str] = field(default_factory=dict)  # see `unpacked.unfinished`


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and when."""

    now_us: int  # the time by the clock, microseconds since the epoch
    pod: str | None = None  # None = all pods
    namespace: str | None = None  # None = all namespaces
    max_age_s: int | None = None  # an answer that rests on older events is none (seconds); None = any will do
    source: str = ""  # what is answered from, as the first line says it; empty = the events themselves


def with_steps(rows: Iterable[Row], incidents: Sequence[FleetIncident]) -> list[dict[str, object]]:
    """Give what is to be done first the step of its incident, as every other surface has it.

    `incidents`: as the contract puts them together, the worst first. One that another precedes gives the other's.
    """
    is_open = [x for x in incidents if x.status is Status.OPEN and x.severity is not Severity.INFO]
    steps = {x.id: x.next_action for x in is_open}
    told = []
    for row in rows:
        one = _incident(row, is_open) if row["follow"] else None
        step = None if one is None else steps.get(one.do_first, one.next_action)
        told.append({**row, "first_action": step})
    return told


def _incident(row: Row, incidents: Sequence[FleetIncident]) -> FleetIncident | None:
    """Find the incident that names a detector to be followed, else the worst, about this copy."""
    here = (row["namespace"], row["application_id"])
    about = [
        x for x in incidents
        if (x.namespace, x.application_id) == here and (row["pod"] in x.pods or not x.pods)
        and (row["task_id"] in (None, *x.tasks) or not x.tasks)
    ]  # fmt: skip
    follow = set(texts(row["follow"]))
    return next(
        (x for x in about if any(y.detector in follow for _, y in x.findings)), next(iter(about), None)
    )


def answer(known: Known, question: Question) -> tuple[list[str], Exit]:
    """Put what is known about restarts into lines, with the exit code.

    Raises `UsageError`: no such pod, or several of its name.
    """
    here = [pod for pod in known.pods if question.namespace in (None, pod["namespace"])]
    asked = [pod for pod in here if question.pod in (None, pod["pod"])]
    _check(asked, here or known.pods, question)
    reported = pod_answers(known.restarts, asked)
    age_us = question.now_us - known.as_of_us
    fresh = question.max_age_s is None or abs(age_us) <= question.max_age_s * 1_000_000
    lines = [_as_of(known.as_of_us, question, fresh)]
    keys = set(map(_key, asked))
    own = [row for row in known.restarts if _key(row) in keys]
    rests_on = keys | {(row["namespace"], pod) for row in own for pod in texts(row["healthy_elsewhere"])}
    unasked = {str(row["detector"]) for row in known.disabled if _key(row) in rests_on}
    if unasked:
        lines.append(f"disabled detectors, not checked: {', '.join(sorted(unasked))}")
    if not known.verified:
        lines.append(UNVERIFIED)
    named = len({pod["namespace"] for pod in here}) > 1
    # lines of another version name their pod; of some files nobody knows whose last words they keep
    files = [path for path, pod in known.unfinished.items() if not pod or tuple(pod.rsplit("/", 1)) in keys]
    if question.pod is not None:
        lines += _one_pod(reported[0], named, fresh)
        left, code = unread.in_words({}, files=files), _code(reported, fresh)
    else:
        lines += _all_pods(reported, named, fresh)
        left = unread.in_words(known.unread, question.namespace, files)
        code = _code([one for one in reported if not one.is_gone], fresh)
    return ([*lines, left], code or Exit.UNREAD) if left else (lines, code)


def _code(reported: Sequence[PodAnswer], fresh: bool) -> Exit:
    """What is known to be in the way counts, whatever else is unknown; of what is too old, or nobody, nothing is."""
    words = {word for one in reported for word in one.kinds}
    known = words - {UNKNOWN, *HARMLESS}
    return code_of(found=fresh and bool(known), unread=not fresh or not reported or UNKNOWN in words)


def _check(asked: Sequence[Row], there: Sequence[Row], question: Question) -> None:
    if not asked:
        names = sorted({str(pod["pod"]) for pod in there})
        what = f"pod {question.pod}" if question.pod else f"namespace {question.namespace}"
        where = f" in namespace {question.namespace}" if question.pod and question.namespace else ""
        raise UsageError(f"no event of {what}{where}; known: {some(names)}")
    spaces = sorted({str(pod["namespace"]) for pod in asked})
    if question.pod and len(spaces) > 1:
        choices = ", ".join(space or "''" for space in spaces)
        raise UsageError(f"pod {question.pod} is in several namespaces: name one with --namespace: {choices}")


def _as_of(as_of_us: int, question: Question, fresh: bool) -> str:
    words = how_old((question.now_us - as_of_us) / 1e6)
    source = f", by {question.source}" if question.source else ""
    stale = "" if fresh else f": too old to answer (limit {age(question.max_age_s or 0)}: --max-age)"
    return f"as of {moment(as_of_us)}, {words}{source}{stale}"


def age(seconds: float) -> str:
    """Write a duration: `41 s`, `14 min`, `3 h`, `2 d`."""
    return next(f"{int(seconds // unit_s)} {unit}" for from_s, unit_s, unit in _UNITS if seconds >= from_s)


def how_old(seconds: float) -> str:
    """Write an age: `41 s old`; of what comes from a clock that is ahead, how far."""
    return f"{age(abs(seconds))} {'old' if seconds >= 0 else 'ahead of this clock'}"


def _key(row: Row) -> tuple[object, object]:
    return row["namespace"], row["pod"]


class PodAnswer:
    """One pod and the answers for what is on it."""

    def __init__(self, pod: Row, rows: Sequence[Row]) -> None:
        self.pod = pod
        self.rows = rows
        kinds: dict[str, list[Row]] = {UNKNOWN: []} if pod["doubt"] is not None else {}
        for row in rows:
            for kind in texts(row["kinds"]):
                kinds.setdefault(kind, []).append(row)
        self.kinds = dict(sorted(kinds.items(), key=lambda item: danger(item[0]), reverse=True))
        self.worst = next(iter(self.kinds), SAFE)

    @property
    def is_gone(self) -> bool:
        """Whether it said goodbye, and left nothing to be done."""
        return bool(self.pod["gone"]) and self.worst != DAMAGED

    def words(self, kind: str) -> str:
        """Say what an answer means for this pod."""
        if not self.kinds:
            return "it holds no task that can be seen"
        if kind == DAMAGED:
            return self.follow(kind)
        if kind == UNKNOWN and self.pod["doubt"] is not None:
            return f"{self.pod['doubt']}; its current tasks are unknown"
        return ANSWERS.get(kind, "")

    def follow(self, kind: str) -> str:
        """Say what has to be done first; empty: nothing."""
        rows = self.kinds[kind] if kind == DAMAGED else ()
        units = sorted({unit for row in rows for unit in texts(row["follow"])})
        return f"follow {', '.join(units)} first" if units else ""


def pod_answers(rows: Sequence[Row], pods: Sequence[Row]) -> list[PodAnswer]:
    """Answer for pods, in their order, each with its rows."""
    of_pod: dict[tuple[object, object], list[Row]] = {_key(pod): [] for pod in pods}
    for row in rows:
        of_pod.get(_key(row), []).append(row)
    return [PodAnswer(pod, of_pod[_key(pod)]) for pod in pods]


def danger(kind: str) -> int:
    """Rank an answer from harmless to dangerous; a word of a newer version is not harmless."""
    return _WORST.index(kind) if kind in _WORST else len(_WORST)


def reasons(row: Row) -> list[tuple[str, str]]:
    """Give the reasons of a row as label and text."""
    found = [(FIRST, str(row["first_action"]))] if row["first_action"] else []
    if row["task_id"] is None:
        return found
    good, bad = texts(row["healthy_elsewhere"]), texts(row["ill_elsewhere"])
    ill = f"; not healthy: {', '.join(bad)}" if bad else ""
    cost = f"; restoring costs {size(row['restore_bytes'])}" if row["restore_bytes"] is not None else ""
    return [
        *found,
        ("elsewhere", f"{', '.join(good) or 'no healthy copy'}{ill}{cost}"),
        *([("doubt", str(row["doubt"]))] if row.get("doubt") else []),
        ("if killed", str(row["unclean_stop"])),
    ]


def place(row: Row) -> str:
    """Name what a row is about: an application, and its task."""
    return "/".join(str(row[key]) for key in ("application_id", "task_id") if row[key] is not None)


def _tasks(rows: Sequence[Row]) -> str:
    number = len([row for row in rows if row["task_id"] is not None])
    return f" ({number} task{'' if number == 1 else 's'})" if number else ""


def _one_pod(one: PodAnswer, named: bool, fresh: bool) -> list[str]:
    words = "; ".join(f"{kind}: {one.words(kind)}{_tasks(rows)}" for kind, rows in one.kinds.items())
    words = words or f"{SAFE}: {one.words(SAFE)}"
    head = words if fresh else f"{UNKNOWN}: too old; it was {words}"
    lines = [f"{pod_name(one.pod, named)}: {head}"]
    steps = dict.fromkeys(str(row["first_action"]) for row in one.rows if row["first_action"])
    lines += [f"  {FIRST}: {step}" for step in steps]
    for row in one.rows:
        lines.append(f"  {place(row)}: {', '.join(texts(row['kinds']))}")
        lines += [f"      {label}: {text}" for label, text in reasons(row) if label != FIRST]
    return lines


def _all_pods(reported: Sequence[PodAnswer], named: bool, fresh: bool) -> list[str]:
    shown = [one for one in reported if not one.is_gone]
    gone = [pod_name(one.pod, named) for one in reported if one.is_gone]
    width = max((len(pod_name(one.pod, named)) for one in shown), default=3)
    lines = [f"{'pod':<{max(width, 3)}}  {'answer':<15}  tasks"]
    for one in shown:
        counts = [f"{len(rows)} {kind}{_follow(one, kind)}" for kind, rows in one.kinds.items() if rows]
        found = ", ".join(counts)
        doubt = [str(one.pod["doubt"])] if one.pod["doubt"] is not None else []
        what = "; ".join([*doubt, found or ("holds none that can be seen" if not doubt else "")]).rstrip("; ")
        word = one.worst if fresh else UNKNOWN
        lines.append(
            f"{pod_name(one.pod, named):<{max(width, 3)}}  {word:<15}  {what if fresh else f'then: {what}'}"
        )
    if gone:
        lines.append(f"stopped, as their agents reported: {some(gone)}")
    return lines


def _follow(one: PodAnswer, kind: str) -> str:
    words = one.follow(kind)
    return f" ({words})" if words else ""
