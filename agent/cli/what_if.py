"""`preflight --if`: what a changed setting would make of the state on disk, before it is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.cli.offline import reading
from agent.config import Config
from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.detectors.undecided import META as UNDECIDED
from agent.engine.one_reading import coverage, judge_once, plural
from agent.inventory.settings import Setting, SettingsBook
from agent.layout.facts import FACTS, Fact
from agent.layout.releases import LATEST, Release
from agent.preflight.telling import Level, Result

CHECK = "if"


def judge_change(config: Config, assumed: Config, words: str) -> list[Result]:
    """List what is in the way of a changed setting.

    `words`: the change, as it was given. Gives a failed check for each finding of warning and above that only the
    changed settings bring; one that is well where there is none. Raises `UsageError`: the state directory cannot be
    read.
    """
    assumed = replace(assumed, applications=_with_a_release(assumed.applications))
    today, _ = _findings(config)
    then, what_was_read = _findings(assumed)
    known = {(x.detector, x.application_id, x.task_id, x.summary) for x in today}
    new = [x for x in then if (x.detector, x.application_id, x.task_id, x.summary) not in known]
    blockers = [_result(x, words) for x in new if x.severity is not Severity.INFO]
    if blockers:
        return blockers
    count = sum(x.severity is Severity.CRITICAL and x.status is Status.OPEN for x in today)
    already = f"open already: {plural(count, 'critical finding')} (`statewarden scan`)"
    said = f"with {words} nothing new is in the way; this is no all-clear, {already}; read {what_was_read}"
    return [Result(CHECK, Level.OK, said)]


def _with_a_release(book: SettingsBook) -> SettingsBook:
    """Transactional stores need 4.4: where an earlier release is configured, the change comes with an upgrade."""
    return SettingsBook(_upgraded(book.common), {name: _upgraded(own) for name, own in book.own.items()})


def _upgraded(settings: Mapping[str, Setting]) -> Mapping[str, Setting]:
    group = dict(settings)
    wanted = group.get("enable_transactional_statestores")
    release = group.get("kafka_streams_version")
    if wanted is None or wanted.value.lower() != "true":
        return group
    first = FACTS[Fact.TRANSACTIONAL_STORES].holds[0].bounds[0]
    if release is None or Release.parse(release.value) < first:
        group["kafka_streams_version"] = Setting(str(LATEST), CHECK)
    return group


def _findings(config: Config) -> tuple[list[Finding], str]:
    with reading(Path(config.agent.state_dir), config) as (pipeline, now_us, _):
        return judge_once(pipeline, now_us), coverage(pipeline.inventory)


def _result(finding: Finding, words: str) -> Result:
    place = "/".join(x for x in (finding.application_id, finding.task_id) if x)
    level = Level.WARNING if finding.detector == UNDECIDED.id else Level.FAILED
    return Result(CHECK, level, f"with {words}: {finding.summary}", place, finding.next_action)
