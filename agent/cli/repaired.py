"""`repaired`: is an incident over; only a proof says yes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill

from agent.cli.arguments import add_settings, config_of
from agent.cli.known import RecordedStory
from agent.cli.offline import read_once, require_state_dir_name
from agent.cli.output import width_of
from agent.contract.codec import moment, parse_us, printable
from agent.contract.events import Severity, Status
from agent.contract.exit_codes import Exit, answer
from agent.contract.finding import Finding
from agent.contract.grouping import incident_of
from agent.contract.incidents import Incident, gather
from agent.engine.pipeline import Pipeline
from agent.engine.unread import unread
from agent.errors import UsageError
from agent.home.proofs import NOT_VERIFIED, leave
from agent.inventory.model import Task
from agent.inventory.sessions import stored_offset
from agent.quantities.changelog import is_real

_NO_OFFSET = (
    "no offset is on disk, so the end of the restoration is not known: ask again after the next orderly stop, or give"
    " --bootstrap-servers"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser, and what answers it."""
    parser.add_argument("id", metavar="INCIDENT", help="an incident or one of its findings")
    parser.add_argument("source", nargs="?", metavar="SOURCE",
                        help="where it is recorded, best the running agent: http://HOST:9464")  # fmt: skip
    parser.add_argument("--state-dir", metavar="DIR", help="Kafka Streams' state.dir (default: as for `run`)")
    parser.add_argument("--task", action="append", default=[], metavar="APPLICATION/TASK",
                        help="a task of the incident, where SOURCE no longer knows it; may be repeated")  # fmt: skip
    parser.add_argument("--made-after", metavar="TIME",
                        help="when the damage was last seen, such as 2026-11-27T03:00:00Z: an older store is the"
                        " damaged one (needed without SOURCE)")  # fmt: skip
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT,...",
                        help="verify the stores against their changelogs, too")  # fmt: skip
    parser.add_argument("--client-config", default="", metavar="FILE",
                        help="key=value lines by librdkafka's names: TLS, SASL")  # fmt: skip
    parser.add_argument("--record", action="store_true",
                        help="leave the proof for the agent to report (settings name its home or spool)")  # fmt: skip
    add_settings(parser)
    parser.set_defaults(command=repaired)


@dataclass
class _Answer:
    """What was found of one condition after another."""

    proved: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)  # it is not repaired
    unknown: list[str] = field(default_factory=list)  # nor known to be
    left: list[str] = field(default_factory=list)  # not asked

    def code(self) -> Exit:
        return answer(found=bool(self.against), unread=bool(self.unknown))

    def text(self, asked: str) -> str:
        words = {Exit.CLEAR: "repaired", Exit.FOUND: "NOT repaired"}.get(self.code(), "not known yet")
        rows = (("no", self.against), ("?", self.unknown), ("yes", self.proved), ("-", self.left))
        lines = (f"{mark:>5}  {printable(x)}" for mark, said in rows for x in said)
        width = width_of(sys.stdout)
        return (
            "\n".join([f"{asked}: {words}", *(fill(x, width, subsequent_indent=" " * 7) for x in lines)])
            + "\n"
        )


def repaired(chosen: argparse.Namespace) -> int:
    """Answer, and say what each part of it rests on. Raises: see `scan` and `explain`."""
    config = config_of(chosen, {"state_dir": chosen.state_dir})
    require_state_dir_name(config.agent.state_dir, "repaired --state-dir")
    after_us = _time(chosen.made_after)
    said, state_dir = _Answer(), Path(config.agent.state_dir)
    incident = None
    if chosen.source:
        story = RecordedStory(chosen.source, config)
        incident = story.incident(chosen.id)
        said.unknown += story.unread
    tasks = {_address(text) for text in chosen.task}
    pipeline, findings, now_us = read_once(state_dir, config)
    read = [x for x in gather(findings) if chosen.id in (x.id, *(y.id for y in x.members))]
    tasks |= {(one.application_id, x) for one in (incident, *read) if one for x in one.tasks}
    if not tasks:
        raise UsageError(
            f"{chosen.id}: {chosen.source} does not know it: add --task APPLICATION/TASK"
            if chosen.source
            else f"{chosen.id}: its tasks are not known: give SOURCE or --task APPLICATION/TASK"
        )
    if incident is not None:
        _judge_record(incident, chosen.source, said)
    elif after_us is None:
        said.unknown.append(
            "can't tell whether its stores were made anew: give SOURCE, or --made-after with the time when it was"
            " last seen"
        )
    _judge_reading(pipeline, findings, tasks, said)
    ids = (
        pipeline.disabled.keys() & {x.detector for _, x in incident.findings}
        if incident
        else pipeline.disabled
    )
    said.unknown += [f"{x} is disabled: the new reading did not look for it" for x in sorted(ids)]
    lives = {x.identity for _, x in incident.findings if x.identity and not _stays(x)} if incident else set()
    proofs, by_broker = {}, bool(chosen.bootstrap_servers)
    for application, task in sorted(tasks):
        known = len(said.proved)
        _judge_task(pipeline, application, task, lives, after_us, said, by_broker=by_broker)
        if by_broker:
            _verify(chosen, state_dir, application, task, said)
        proofs[f"{application}/{task}"] = said.proved[known:] + [NOT_VERIFIED] * (not by_broker)
    if not by_broker:
        said.left.append(f"{NOT_VERIFIED} (--bootstrap-servers)")
    if chosen.record and said.code() is Exit.CLEAR:
        id_ = incident.id if incident else chosen.id if chosen.id.startswith("i-") else incident_of(chosen.id)
        said.left.append(leave(config.agent.home or config.agent.spool, state_dir, id_, now_us, proofs))
    sys.stdout.write(said.text(chosen.id))
    return said.code()


def _time(text: str | None) -> int | None:
    at_us = None if text is None else parse_us(text)
    if text is not None and at_us is None:
        raise UsageError(f"--made-after {text}: expected a time with its zone, such as 2026-11-27T03:00:00Z")
    return at_us


def _address(text: str) -> tuple[str, str]:
    application, _, task = text.partition("/")
    if not task:
        raise UsageError(f"--task {text}: expected APPLICATION/TASK, such as orders/0_1")
    return application, task


def _judge_record(incident: Incident[Finding], source: str, said: _Answer) -> None:
    if incident.status is not Status.OPEN:
        said.proved.append(f"{source} has it resolved")
    elif any(x.status is Status.OPEN and not x.lasting for _, x in incident.findings) or all(
        _stays(x) for _, x in incident.findings
    ):
        said.against.append(f"{source} has it open: {incident.sentence}")
    else:
        said.proved.append(
            f"{source} has it resolved but for what comes with release or settings and stays: {incident.sentence}"
        )


def _stays(finding: Finding) -> bool:
    """Tell whether a repaired store has it as well: the restored one is exposed as the damaged one was."""
    return finding.status is Status.OPEN and finding.lasting


def _judge_reading(
    pipeline: Pipeline, findings: list[Finding], tasks: set[tuple[str, str]], said: _Answer
) -> None:
    """A new reading must find nothing of these tasks; what comes with release and settings alone comes again."""
    is_open = [x for x in findings if x.status is Status.OPEN and x.severity is not Severity.INFO]
    bad = [x for x in is_open if (x.application_id, x.task_id) in tasks and not x.lasting]
    said.against += [f"a new reading finds {x.detector}: {x.summary}" for x in bad]
    places = [place for place in unread(pipeline.inventory) if any(f"{a}/{t}" in place for a, t in tasks)]
    said.unknown += [f"{place} could not be read" for place in places]
    asked = [
        x for x in pipeline.worlds.decisions() if any((x.application_id, task) in tasks for task in x.tasks)
    ]
    said.unknown += [f"undecided: {', '.join(x.question)} not given" for x in asked]
    if not (bad or places or asked):
        said.proved.append("a new reading finds nothing wrong with its tasks")


def _judge_task(
    pipeline: Pipeline,
    application: str,
    name: str,
    lives: set[str],
    after_us: int | None,
    said: _Answer,
    *,
    by_broker: bool,
) -> None:
    known = pipeline.inventory.applications.get(application)
    task = known.tasks.get(name) if known else None
    if task is None or not task.exists:
        said.unknown.append(
            f"{application}/{name} is not there: not restored yet, or it runs on another pod now: ask there"
        )
        return
    if lives & task.identities:
        said.against.append(f"{application}/{name} still has the store that was found damaged")
    for database in [] if after_us is None else task.databases:
        # a copy of the damaged one has its data, whatever its files' times are
        made_us = min(database.born_us, database.oldest_data_us or database.born_us)
        if made_us <= (after_us or 0):
            made = f"made {moment(made_us)}" if made_us else "made at an unknown time"
            said.against.append(
                f"{database.path} was not made anew: {made}, --made-after {moment(after_us or 0)}"
            )
    for words, is_known in _restored(task):
        (said.proved if is_known or by_broker else said.unknown).append(f"{application}/{words}")


def _restored(task: Task) -> Iterator[tuple[str, bool]]:
    """Say how far each store is restored, and whether the disk tells that."""
    if not task.stores:
        yield f"{task.id} has no store yet", False
    for store in task.stores.values():
        offset = task.checkpoint.offsets.get(store.name) if task.checkpoint else None
        offset = stored_offset(store) if offset is None else offset
        if is_real(offset):
            yield f"{task.id}/{store.name} claims to be restored up to offset {offset}", True
        else:
            yield f"{task.id}/{store.name}: {_NO_OFFSET}", False


def _verify(chosen: argparse.Namespace, state_dir: Path, application: str, task: str, said: _Answer) -> None:
    from agent.cli.verify import DEFAULT_FAIL_ON, add_options, verify

    parser = argparse.ArgumentParser()
    add_options(parser)
    asked = parser.parse_args([
        f"--bootstrap-servers={chosen.bootstrap_servers}", f"--client-config={chosen.client_config}",
        f"--application={application}", f"--task={task}", f"--fail-on={DEFAULT_FAIL_ON},behind", "--", str(state_dir),
    ])  # fmt: skip
    code, name = verify(asked), f"{application}/{task}"
    if code == Exit.CLEAR:
        said.proved.append(f"verified: {name} holds what its changelogs say")
    elif code == Exit.FOUND:
        said.against.append(f"{name} does not hold what its changelogs say, see above")
    else:
        said.unknown.append(f"{name} could not be verified, see above")
