"""What `statewarden repaired` proved, left in the agent's own directory: the agent says it, in its own sequence.

It is a remark of its own in the incident. So it ends nothing that is open, and nothing that was said can undo it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.contract.digest import hex_digest
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.finding import REPAIRED, Evidence, Finding
from agent.engine.pipeline import Pipeline
from agent.ship.home import is_inside

LOG = logging.getLogger(__name__)

NOT_VERIFIED = "not verified: no broker was given"


def leave(
    own: str, state_dir: Path, incident_id: str, at_us: int, proofs: Mapping[str, Sequence[str]]
) -> str:
    """Leave for the agent what was proved of each task (`APPLICATION/TASK`), and say whether it is told."""
    name = f"{REPAIRED}-{os.urandom(6).hex()}.json"
    if not own or is_inside(Path(own), state_dir):
        return "no agent is told: the settings name no home or spool of one"
    try:
        with Path(own, f".{name}").open("x", encoding="ascii") as file:  # through no link
            json.dump([incident_id, at_us, proofs], file)
        Path(own, f".{name}").replace(Path(own, name))
    except OSError as error:
        return f"no agent is told: {own}: {error.strerror}"
    return f"left in {own}: its agent tells it with the incident's end"


def report(own: Path, pipeline: Pipeline, now_us: int) -> None:
    """Say what was left, once."""
    for path in own.glob(f"{REPAIRED}-*.json"):
        try:
            text = path.read_bytes()
            path.unlink()
            incident_id, at_us, proofs = json.loads(text)
            for address, words in proofs.items():
                pipeline.tell(_finding(str(incident_id), int(at_us), address, words), now_us)
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            LOG.error("can't use what `repaired` left: %s", error)


def _finding(incident_id: str, at_us: int, address: str, words: Sequence[str]) -> Finding:
    application, _, task = address.partition("/")
    return Finding(
        hex_digest("\0".join((REPAIRED, incident_id, address)).encode("ascii", "backslashreplace"))[:16], REPAIRED,
        Level.EVENT, Severity.INFO, Confidence.SUSPECTED if NOT_VERIFIED in words else Confidence.CONFIRMED,
        Status.RESOLVED, application, task, None, None, at_us, at_us, (), Affected.NO, (),
        f"Repaired: {'; '.join(words)}.", tuple(Evidence(at_us, x, address) for x in words), "Nothing more.",
        REPAIRED, incident_id,
    )  # fmt: skip
