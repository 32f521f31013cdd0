"""`plan`: one script for exactly one incident. It is printed and never run, and refused where it would not be safe."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from agent import __version__
from agent.cli.arguments import add_settings, config_of, same_settings
from agent.cli.incident_text import is_past
from agent.cli.known import FoundIncident, known_of
from agent.config import Config
from agent.contract.codec import printable, rfc3339
from agent.contract.events import Level, Severity, Status
from agent.contract.finding import Finding
from agent.contract.grouping import OF_ONE_AGENT
from agent.contract.incidents import Incident
from agent.contract.units import Remedy
from agent.errors import UnreadError

_TASK = re.compile(r"(__[A-Za-z0-9._-]+__/)?\d+_\d+|global", re.ASCII)
_NAME = re.compile(r"(?!-|\.{1,2}$)[A-Za-z0-9._-]+", re.ASCII)  # with a dash first it would be an option
_ORDINAL = re.compile(r"(.+)-\d+", re.ASCII)
_HERE = Path(__file__).parent
_COMMENT = 116  # columns of a comment

_KEPT = {
    Remedy.KEEP: "nothing may be removed: what is on disk may be the only complete copy",
    Remedy.OTHER: "the next step of this incident removes no task directory",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser, and what answers it."""
    parser.add_argument("id", metavar="INCIDENT", help="an incident or one of its findings")
    parser.add_argument("source", nargs="?", metavar="SOURCE",
                        help="where it is recorded: http://HOST:9464 of a running agent, its spool, a directory,"
                        " s3://BUCKET/PREFIX, or an audit's output (default: --state-dir)")  # fmt: skip
    parser.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="Kafka Streams' state.dir on this machine"
    )
    add_settings(parser)
    parser.set_defaults(command=lambda chosen: plan(chosen, config_of(chosen)))


def plan(chosen: argparse.Namespace, config: Config) -> int:
    """Print the script. Raises `UnreadError`: it would not be safe; it says what to find out."""
    known = known_of(chosen.id, chosen.source, chosen.state_dir, config)
    incident = known.incident
    why = refusal(incident)
    if why:
        instead = "" if is_past(incident) else f". Its step: {incident.next_action}"
        raise UnreadError(f"{incident.id}: no script: {why}{instead}")
    sys.stdout.write(script(known, _asked(known, chosen, config)))
    return 0


def refusal(incident: Incident[Finding]) -> str:
    """Say why no script can be followed; empty: one can."""
    if incident.status is not Status.OPEN:
        return "the incident is over: remove nothing for it"
    if incident.do_first.startswith("i-"):
        return f"incident {incident.do_first}, about the same task, comes first"
    if incident.remedy in _KEPT:
        asks = ", ".join(incident.lead.missing_facts)
        return _KEPT[incident.remedy] + (f"; for a clearer verdict, give {asks}" if asks else "")
    if incident.severity is Severity.INFO:
        return "it is a remark: nothing shows that state is wrong"
    if not incident.step_tasks or not all(map(_TASK.fullmatch, incident.step_tasks)):
        return "its task names are not those of Kafka Streams"
    is_directory = _NAME.fullmatch(incident.application_id)
    return "" if is_directory else "the application's name is not a valid directory name"


def _asked(known: FoundIncident, chosen: argparse.Namespace, config: Config) -> list[str]:
    """Give what `repaired` is asked with: the same tasks, where an agent runs that agent, else the same settings."""
    incident = known.incident
    words = [x for task in incident.step_tasks for x in ("--task", f"{incident.application_id}/{task}")]
    words += ["--made-after", rfc3339(known.seen_us)]
    if known.namespace:
        return ["http://localhost:9464", *words, "--record"]
    if config.agent.home or config.agent.spool:
        words.append("--record")
    if chosen.source and chosen.source.startswith("http"):
        words.insert(0, chosen.source)
    return [*words, *same_settings(chosen)]


def script(known: FoundIncident, asked: list[str]) -> str:
    """Write it: what is known and what is not on top, then what is done with it, the same for every incident."""
    place = "kubernetes" if known.namespace else "host"
    parts = ["\n".join(_head(known, asked)), (_HERE / f"plan_{place}.sh").read_text("utf-8")]
    return "".join([*parts, (_HERE / "plan.sh").read_text("utf-8")])


def _head(known: FoundIncident, asked: list[str]) -> Iterator[str]:
    incident = known.incident
    tasks = " ".join(map(shlex.quote, incident.step_tasks))
    stores = " ".join(map(shlex.quote, sorted(_stores(incident))))
    yield "#!/usr/bin/env bash"
    what = f"{incident.lead.detector} ({incident.severity}, {incident.confidence})"
    where = "/".join(x for x in (known.namespace, known.pod) if x)
    for line in (
        f"Incident {incident.id}: {what} of {incident.application_id} {tasks} on {where}.",
        incident.sentence,
        f"Next step: {incident.next_action}",
        f"Printed, not run, by `statewarden plan` {__version__}. Read it, fill in what is empty, then: bash FILE",
    ):
        yield from _comment(line)
    yield f"""set -euo pipefail

# --- What is known
INCIDENT={shlex.quote(incident.id)}
APPLICATION={shlex.quote(incident.application_id)}
TASKS=({tasks})  # all of these are removed, then one start
STORES=({stores})  # task and IDENTITY of each damaged store; empty: nothing to compare
SEEN_AT={shlex.quote(_seen_at(known))}  # the script refuses if a file changed after it; empty: not checked
POD={shlex.quote(known.pod)}
ASKED=({" ".join(map(shlex.quote, asked))})  # arguments of `repaired` at the end
BROKERS=''  # optional: HOST:PORT,... also verifies the stores against their changelogs
WATCH_FOR_S=3600

# --- Fill these in here: environment variables of these names are ignored"""
    needed = [_COPIES, *(_kubernetes(known) if known.namespace else _host(known))]
    if incident.remedy is Remedy.CHECK_FIRST:
        needed.insert(0, _CHECK)
    for name, value, reason in needed:
        yield from _comment(reason)
        yield f"{name}={shlex.quote(value)}"
    names = [name for name, _, _ in needed]
    if known.others:
        yield from _also(known)
        names.append("OTHERS")
    yield f"NEEDED=({' '.join(names)})"
    yield "KEPT=$COPY_TO/$INCIDENT"
    yield ""


_CHECK = (
    "CHECKED", "", "Type yes once you have done the check named in `Next step` and it did not clear the finding.",
)  # fmt: skip
_COPIES = (
    "COPY_TO", "",
    "A directory of this machine, outside the state: the copies are all that can undo a mistake.",
)  # fmt: skip


def _also(known: FoundIncident) -> Iterator[str]:
    """Ask what becomes of the other incidents of the instance: the one start takes their state as it is, too."""
    own = set(known.incident.step_tasks)
    for one in known.others:
        where = " ".join(one.tasks) or one.application_id
        what = f"{one.id}, {one.lead.detector} ({one.severity}) of {where}"
        yield from _comment(f"Also open here: {what}. Its step: {one.next_action}")
    # of an incident of several pods the tasks may be those of another pod: here is perhaps a sound copy of them
    own_pods = known.incident.pods, _pod_of(known.incident)
    removes = [x for x in known.others if x.remedy not in _KEPT and (x.pods, _pod_of(x)) == own_pods]
    tasks = sorted({x for one in removes for x in one.step_tasks if _TASK.fullmatch(x)} - own)
    stores = sorted({x for one in removes for x in _stores(one) if x.split()[0] in tasks})
    yield from _comment(
        f"together: also copy and remove {' '.join(tasks)} in this stop (first do the checks that the steps name)."
        " left: start with that state unchanged"
        if tasks
        else "left: start with that state unchanged"
    )
    yield "OTHERS=''"
    if tasks:
        asked = [x for task in tasks for x in ("--task", f"{known.incident.application_id}/{task}")]
        words = (" ".join(map(shlex.quote, x)) for x in (tasks, stores, asked))
        adds = "; ".join(
            f"{name}+=({x})" for name, x in zip(("TASKS", "STORES", "ASKED"), words, strict=True)
        )
        yield f'if [ "$OTHERS" = together ]; then {adds}; elif [ "$OTHERS" != left ]; then OTHERS=\'\'; fi'


def _pod_of(incident: Incident[Finding]) -> str:
    """Name the pod whose tasks are those of the step; empty: there is one only."""
    link = getattr(incident.lead, "link", OF_ONE_AGENT)
    return str(link.pod)


def _kubernetes(known: FoundIncident) -> list[tuple[str, str, str]]:
    of_set = _ORDINAL.fullmatch(known.pod)
    claim = "{.spec.volumes[*].persistentVolumeClaim.claimName}"
    return [
        ("NAMESPACE", known.namespace, "As its agent said."),
        ("SET", of_set[1] if of_set else "",
         "The StatefulSet of the pod, by its name. Of anything else: statewarden explain stopped-volume"),
        ("CLAIM", "",
         f"The claim with the state: kubectl -n {known.namespace} get pod {known.pod} -o jsonpath='{claim}'"),
        ("STATE_IN_CLAIM", "",
         "state.dir's path in the claim: without the mountPath, behind the subPath; . if it is its root"),
        ("PAUSED", "",
         "Type yes once everything that would recreate the StatefulSet (Argo CD, Flux, an operator) is paused, or if"
         " there is nothing of the kind."),
        ("IMAGE", "docker.io/library/debian:12-slim",
         "For the maintenance pod: anything with a shell, GNU find and tar."),
        ("AGENT", "statewarden", "The agent's container in the pod, as the chart calls it."),
    ]  # fmt: skip


def _host(known: FoundIncident) -> list[tuple[str, str, str]]:
    at = str(known.state_dir.resolve()) if known.state_dir else ""
    return [
        ("STATE_DIR", at, "state.dir, above the directory of the application."),
        (
            "STOP",
            "",
            "The command that stops the instance cleanly, such as: systemctl stop orders (`true` if it is stopped)",
        ),
        ("START", "", "The command that starts it again, such as: systemctl start orders"),
    ]


def _stores(incident: Incident[Finding]) -> set[str]:
    """List the damaged lives of stores: of an exposure the files may be gone."""
    return {
        f"{x.task_id} {x.identity}" for _, x in incident.findings
        if x.level is Level.DAMAGE and x.status is Status.OPEN and x.task_id in incident.step_tasks and x.identity
        and not x.identity.startswith("unnamed-")
    }  # fmt: skip


def _seen_at(known: FoundIncident) -> str:
    """Say when it was read, where that is the state of a stopped process; empty: a process may be at work."""
    incident = known.incident
    at_rest = incident.remedy is Remedy.RESTORE and incident.lead.level is Level.EXPOSURE
    return f"{rfc3339(known.seen_us)[:26].replace('T', ' ')} UTC" if at_rest else ""


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        printable(text), _COMMENT, initial_indent="# ", subsequent_indent="# ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
