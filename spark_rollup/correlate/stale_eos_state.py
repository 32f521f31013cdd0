"""After a wipe that did not happen: where the untrusted state went, by volume and by changelog.

Signal: an agent's `skipped-eos-wipe` or `interrupted-wipe` finding of severity warning or above, or a
    `skipped-eos-wipe` that is information only because its agent does not know the copy's role, active or standby.
Fires when: such a finding is there; of information, when the fleet shows that the copy was the active. Tainted are:
    later pods with the same store IDENTITY (the volume moved), and later owners of the task, whose copy comes from a
    changelog that the suspect wrote to.
Clears when: the agent's finding is resolved.
Stays quiet when: the agents report nothing of the kind, or information about a copy whose role the fleet does not know.
Source: KAFKA-20685, KAFKA-10362, KAFKA-7192, KAFKA-9891.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from agent.contract.events import Change, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import UNCOMMITTED_RESULTS, Twin
from spark_rollup.fleet.application import SKEW_US, Application, Rule, Task, at_least, at_most
from spark_rollup.fleet.growth import course, unsaved_limit, went_on_unsaved
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.roles import Tenure, tenure_before, why_active
from spark_rollup.fleet.rows import Entry, Mark, Reading, Said
from spark_rollup.fleet.words import chain, entry, finding, lowered, of_store, words_of_agent

META = RuleMeta(
    id="stale-eos-state",
    title="Uncommitted state was kept after a crash, and others may have it now",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.UNCOMMITTED_DATA,
    upstream=("KAFKA-20685", "KAFKA-10362", "KAFKA-7192", "KAFKA-9891"),
    asks=("skipped-eos-wipe", "interrupted-wipe"),
    consequence=f"{UNCOMMITTED_RESULTS} Pods that restored from it since have them too.",
    twin=Twin("the same crash on the release with the fix", "control-9891-2.5.1"),
)

COMMITS, COMMIT_INTERVAL_MS = 2, 100
"""After so many commits, of this interval by default under exactly-once, one has passed (the agent's own role test)."""

LAST_WITH_9891, FIRST_WITHOUT_FILES = (2, 5, 0), (4, 3)
"""Up to the one a standby that becomes active keeps what should be wiped (KAFKA-9891); from the other on no task writes
a checkpoint file, so that one without is no sign."""


def find(app: Application) -> Iterator[Row]:
    """List for each skipped or interrupted wipe every pod that the untrusted state reached since."""
    for task, said in app.suspects("skipped-eos-wipe", "interrupted-wipe"):
        quiet = said.severity == Severity.INFO.value
        suspected = said.confidence == Confidence.SUSPECTED.value
        if quiet and not (said.detector == "skipped-eos-wipe" and suspected):
            continue
        tenure = tenure_before(task, said)
        active = _active_elsewhere(app, task, said, tenure) if suspected and _shows_roles(app) else None
        why = why_active(app, task, said, tenure)
        if active and tenure:
            yield _ruled_out(app, task, said, tenure, active)
        elif not quiet or why:
            yield _tainted(app, task, said, tenure, why)


def _shows_roles(app: Application) -> bool:
    """Return whether a release is known that shows roles, and standbys may exist."""
    known = app.settings
    if known is None or (known.num_standby_replicas is not None and known.num_standby_replicas < 1):
        return False
    return (
        at_most(known.release_low, LAST_WITH_9891) is False
        and at_least(known.release_high, FIRST_WITHOUT_FILES) is False
    )


def _active_elsewhere(app: Application, task: Task, said: Said, tenure: Tenure | None) -> str | None:
    """Find another pod that was the active while the suspect's role is unknown.

    Under exactly-once an active writes no checkpoint while it works and a standby does: a pod that put in more than
    10,000 records without one, went on, and was watched all the time was the active. So the suspect was a standby,
    whose stores need no wipe (KAFKA-9891 aside).
    """
    if tenure is None or app.settings is None:
        return None
    commit_ms = app.settings.commit_interval_ms
    commits_us = (COMMIT_INTERVAL_MS if commit_ms is None else commit_ms) * COMMITS * 1_000 + SKEW_US
    grown: dict[tuple[str, str | None], list[Reading]] = defaultdict(list)
    for x in task.readings:
        # what the other pod put in must be the tenure's own whatever the two clocks say
        surely = tenure.from_us + SKEW_US <= x.at_us <= tenure.to_us - SKEW_US
        if x.pod != said.pod and surely and x.puts is not None and not x.anchor:
            grown[x.pod, x.store].append(x)
    wrote = {
        x.pod for x in task.marks
        if x.change == Change.CHECKPOINT_WRITTEN.value and tenure.from_us <= x.at_us <= tenure.to_us
    }  # fmt: skip
    active = {
        pod for (pod, _), readings in grown.items()
        if pod not in wrote
        and went_on_unsaved(course(readings), unsaved_limit([x.unsaved_puts for x in readings]), commits_us)
        # a checkpoint that was not seen is no missing one
        and not app.was_unwatched(pod, task.id, tenure.from_us, tenure.to_us)
    }  # fmt: skip
    return min(active, default=None)


def _ruled_out(app: Application, task: Task, said: Said, tenure: Tenure, active: str) -> Row:
    """Say that the suspect was a standby."""
    moved, _ = _moved_volumes(task, said)
    elsewhere, others = task.elsewhere(said.pod, said.opened_at_us, app.as_of_us)
    what = (
        f"{active} was the active of {task.id} before the crash: more than 10,000 records without a checkpoint;"
        f" {said.pod} was its standby"
    )
    return finding(
        META, app.where, said.opened_at_us, **words_of_agent(said) | {
            "severity": Severity.INFO.value, "confidence": Confidence.CONFIRMED.value,
            "status": Status.RESOLVED.value, "ended_us": said.opened_at_us,
        },
        task_id=task.id, store=said.store, pod=said.pod, identity=said.identity,
        summary=what,
        evidence=chain(
            entry(tenure.from_us, what, active), *moved, *_restored(elsewhere), then=said.evidence or ()
        ),
        next_action="Nothing: the suspect was a standby.",
        pods=list(dict.fromkeys([said.pod, *_moved_volumes(task, said)[1], *others])),
        refutes=[said.finding_id],
    )  # fmt: skip


def _tainted(app: Application, task: Task, said: Said, tenure: Tenure | None, why: str | None) -> Row:
    """Say whom the untrusted state reached."""
    pod = said.pod
    moved, moved_pods = _moved_volumes(task, said)
    elsewhere, others = task.elsewhere(pod, said.opened_at_us, app.as_of_us)
    tainted = list(dict.fromkeys([*moved_pods, *others]))
    listed = ", ".join(tainted)
    words = words_of_agent(said)
    if words["severity"] == Severity.INFO.value:
        words["severity"] = Severity.WARNING.value  # what kept the agent from a warning was the role alone
    unwatched = app.was_unwatched(pod, task.id, said.opened_at_us, said.observed_at_us)
    spread = f"; tainted since: {listed}" if tainted else "; no other pod has it so far"
    return finding(
        META, app.where, said.opened_at_us,
        **words | {"confidence": lowered(said.confidence, doubtful=unwatched)},
        task_id=task.id, store=said.store, pod=pod, identity=said.identity,
        summary=f"{pod} kept state of {task.id}{of_store(said.store)}, which should have been wiped after a"
        f" crash{spread}",
        evidence=chain(
            entry(tenure.from_us, why, pod) if tenure and why else None, *moved, *_restored(elsewhere),
            then=said.evidence or (),
        ),
        # the agent's own: it knows whether anything is proved, and of one incident there is one instruction
        next_action=f"Leave the volume of {pod} where it is. There, for task {task.id}: {said.next_action}"
        + (f" Then do the same on {listed}." if tainted else ""),
        pods=list(dict.fromkeys([pod, *tainted])),
        confirms=[said.finding_id],
    )  # fmt: skip


def _moved_volumes(task: Task, said: Said) -> tuple[list[Entry], list[str]]:
    """Say where the same store identity was seen later on other pods: evidence, and names of pods in order."""
    seen: dict[str, list[int]] = defaultdict(list)
    if said.identity is not None:
        of_both: list[Reading | Mark] = [*task.readings, *task.marks]
        for x in of_both:
            if x.identity == said.identity and x.pod != said.pod:
                seen[x.pod].append(x.at_us)
    later = {pod: times for pod, times in seen.items() if max(times) >= said.opened_at_us}
    shown = [
        entry(
            max(min(times), said.opened_at_us),
            f"{pod} has the same store (identity {said.identity}): the volume moved or was copied", pod,
        )
        for pod, times in later.items()
    ]  # fmt: skip
    return shown, sorted(later)


def _restored(elsewhere: list[Entry]) -> list[Entry]:
    return [x._replace(what=f"{x.what}, from a changelog that the suspect wrote to") for x in elsewhere]


RULE = Rule(META, find)
