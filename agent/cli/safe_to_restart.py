"""`safe-to-restart`: may this instance be restarted, as far as one pod can tell."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from agent.cli.arguments import add_settings, config_of, full_path, same_settings
from agent.cli.incident_text import incident_text
from agent.cli.offline import read_once, require_state_dir_name
from agent.cli.output import Reading, width_of
from agent.contract.codec import printable
from agent.contract.events import Confidence, Level, Severity, Status
from agent.contract.exit_codes import answer
from agent.contract.finding import Finding
from agent.contract.incidents import Incident, gather
from agent.engine.one_reading import plural

OTHERS = (
    "whether other pods have a copy was not checked. Ask the fleet: statewarden-rollup safe-to-restart"
    " --from OUT --pod POD; where this is the only instance, give --one-instance"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser, and what answers it."""
    parser.add_argument("state_dir", nargs="?", metavar="STATE_DIR",
                        help="Kafka Streams' state.dir (default: as for `run`)")  # fmt: skip
    parser.add_argument("--one-instance", action="store_true",
                        help="the application has this instance only: it has no other pods")  # fmt: skip
    add_settings(parser)
    parser.set_defaults(command=safe_to_restart)


def safe_to_restart(chosen: argparse.Namespace) -> int:
    """Read the state directory once and answer. Raises: see `scan`."""
    config = config_of(chosen, {"state_dir": chosen.state_dir})
    require_state_dir_name(config.agent.state_dir, "safe-to-restart")
    pipeline, findings, _ = read_once(Path(config.agent.state_dir), config)
    incidents = [x for x in gather(findings, config.applications.accepts) if _matters(x)]
    damaged = [x for x in incidents if _is_damage(x)]
    read = Reading.of(pipeline, "", "")
    doubts = [f"can't read {place}: {why}" for place, why in read.unread.items()] or [read.how_much] * bool(
        read.how_much
    )
    doubts += [] if any(x.tasks for x in pipeline.inventory.applications.values()) else ["no task is there"]
    doubts += (
        [f"{plural(len(incidents) - len(damaged), 'incident')} open, see below"]
        if incidents != damaged
        else []
    )
    if not incidents:  # with `undecided` disabled nothing else says so
        asked = [x for x in read.decisions if x.severity is not Severity.INFO]
        doubts += [f"undecided: {', '.join(x.question)} not given" for x in asked]
    doubts += [] if chosen.one_instance else [OTHERS]
    if sure := [x for x in damaged if x.confidence is Confidence.CONFIRMED]:
        said = f"damaged: {_tasks(sure)}. Follow the step below; a plain restart keeps the damage, or adds to it."
    elif damaged:
        said = f"damaged, suspected: {_tasks(damaged)}. Follow the step below; a plain restart can make it permanent."
    elif doubts:
        said = f"unknown: {'; '.join(doubts)}."
    else:
        said = (
            "safe, if you stop it cleanly (SIGTERM, and enough time to finish; a kill may do harm): nothing on disk"
            " speaks against it."
        )
    off = ", ".join(sorted(config.disabled))
    unasked = f"\ndisabled detectors, not checked: {off}" if off else ""
    sys.stdout.write(f"{printable(said)}{unasked}\n" + "\n" * bool(incidents))
    again = shlex.join(["--state-dir", full_path(config.agent.state_dir), *same_settings(chosen)])
    for one in incidents:
        sys.stdout.write(
            incident_text(
                one,
                paint=False,
                width=width_of(sys.stdout),
                verbose=False,
                read_us=read.read_us,
                source=again,
            )
        )
    return answer(found=bool(damaged), unread=bool(doubts))


def _matters(incident: Incident[Finding]) -> bool:
    """Tell whether it speaks against a restart; what comes with release or settings alone does not."""
    is_open = incident.status is Status.OPEN and incident.severity is not Severity.INFO
    return is_open and not incident.lead.lasting


def _is_damage(incident: Incident[Finding]) -> bool:
    """Tell whether the step comes before a restart, as `restarts` of the fleet does: whatever is critical."""
    return incident.severity is Severity.CRITICAL and incident.lead.level in (Level.DAMAGE, Level.EXPOSURE)


def _tasks(incidents: Iterable[Incident[Finding]]) -> str:
    return ", ".join(dict.fromkeys(f"{x.application_id}/{task}" for x in incidents for task in x.tasks))
