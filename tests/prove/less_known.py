"""Every recording replayed with less knowledge: no form of it may add a critical that full knowledge does not tell.

    python tests/prove/less_known.py [WORD ...] [--form WORD] [--late NUMBER] [--jobs NUMBER]

Forms: the agent starts late, at several moments; histories are short; kinds, entries or manifests are not read; each
told fact is left out, and all of them. A late agent may call critical at once what one that saw everything calls so
when it has lasted for a minute: what that one says of the recording, cut off where the late one starts, is known, too.
Exit code 1: a critical was added.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.contract.events import Kind, Severity  # noqa: E402 - path first
from agent.inventory import flushes, reduce, sessions, store_changes, task_changes  # noqa: E402
from agent.inventory.disk import Unseen  # noqa: E402
from agent.inventory.observations import DatabaseReading  # noqa: E402
from agent.replay.memory_disk import MemoryDisk  # noqa: E402
from agent.replay.trace import Operation, read_trace  # noqa: E402
from tests.support.scenario_world import World  # noqa: E402

TRACES = ROOT / "tests" / "data" / "traces"
QUIET_S = 20 * 60
STARTS = 8
"""Moments at which a late agent starts, at even distances over the operations of a recording."""

THIN = {
    "flushes": ((flushes, "FLUSHES_KEPT", 4),),
    "sessions": ((sessions, "SESSIONS_KEPT", 2),),
    "checkpoints": ((task_changes, "CHECKPOINTS_KEPT", 2),),
    "past": ((store_changes, "PAST_KEPT", 1), (task_changes, "PAST_KEPT", 1)),
}
WITHHELD: Mapping[str, Mapping[str, Any]] = {
    "kinds": {"families": (), "families_in_use": ()},
    "entries": {"entries_low": None, "entries_high": None, "deletions": None},
}


@dataclass(frozen=True, slots=True)
class Critical:
    """A critical of a recording, and how it was told."""

    detector: str
    pod: str
    task: str | None
    confidence: str
    summary: str

    @property
    def key(self) -> tuple[str, str | None]:
        """What makes two of them the same: a late agent may see it on another pod's volume first."""
        return self.detector, self.task


@dataclass(frozen=True, slots=True)
class Form:
    """One way to know less: where the agent starts (share of the operations), what is told, what is kept and read."""

    name: str
    begins: float = 0.0
    leave_out: frozenset[str] = frozenset()
    thin: str = ""
    withheld: str = ""
    unread: str = ""


class BlindDisk(MemoryDisk):
    """A disk on which files of one name cannot be read."""

    def __init__(self, unread: str) -> None:
        """Hide the content of files whose name begins so; empty = of none."""
        super().__init__()
        self._unread = unread

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        """Read part of a file, unless it is hidden."""
        if self._unread and path.rpartition("/")[2].startswith(self._unread):
            return Unseen.UNREADABLE
        return super().read_at(path, offset, length)


def forms(settings: Mapping[str, object], starts: int) -> Iterator[Form]:
    """List the ways to know less than everything."""
    for number in range(1, starts + 1):
        yield Form(f"late {number} of {starts}", begins=number / (starts + 1))
    for name in THIN:
        yield Form(f"thinned {name}", thin=name)
    for name in WITHHELD:
        yield Form(f"withheld {name}", withheld=name)
    yield Form("unread manifests", unread="MANIFEST-")
    for name in settings:
        yield Form(f"not told {name}", leave_out=frozenset({name}))
    yield Form("nothing told", leave_out=frozenset(settings))


def criticals(
    pod: str, operations: Sequence[Operation], settings: Mapping[str, object], form: Form
) -> set[Critical]:
    """Replay one pod in one form; everything that was critical at any time."""
    told = {key: x for key, x in settings.items() if key not in form.leave_out}
    world, begin = World(told, watched=False), _begin(operations, form)
    world.disk = BlindDisk(form.unread)
    with ExitStack() as stack:
        for module, name, kept in THIN.get(form.thin, ()):
            stack.enter_context(patch.object(module, name, kept))
        if form.withheld:
            take = partial(_take_less, store_changes.reduce_database, WITHHELD[form.withheld])
            stack.enter_context(patch.object(reduce, "reduce_database", take))
        for number, operation in enumerate(operations):
            if number == begin:
                world.now_us = operation.at_us
                world.watch()
            world.take(operation)
        world.wait(QUIET_S)
    assert not world.faults, world.faults
    found = (x.body for x in world.records if x.kind is Kind.FINDING)
    return {
        Critical(str(x["detector"]), pod, _text(x["task_id"]), str(x["confidence"]), str(x["summary"]))
        for x in found
        if x["severity"] == Severity.CRITICAL.value
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _begin(operations: Sequence[Operation], form: Form) -> int:
    return int(len(operations) * form.begins)


def _take_less(take: Callable[..., object], less: Mapping[str, Any], *rest: object) -> object:
    *before, look = rest
    assert isinstance(look, DatabaseReading)
    return take(*before, replace(look, **less) if look.identity is not None else look)


def added(folder: Path, starts: int = STARTS, only: str = "") -> list[tuple[str, Critical]]:
    """List (form, critical) of one scenario that full knowledge does not tell."""
    scenario = json.loads((folder / "scenario.json").read_text("utf-8"))
    settings = scenario["settings"]
    found: list[tuple[str, Critical]] = []
    for pod in scenario["pods"]:
        operations = list(read_trace(folder / pod["trace"]))
        known = {x.key for x in criticals(pod["name"], operations, settings, Form("all"))}
        for form in forms(settings, starts):
            if only not in form.name:
                continue
            more = {x for x in criticals(pod["name"], operations, settings, form) if x.key not in known}
            if more and form.begins:
                cut = operations[: _begin(operations, form)]
                lasting = {x.key for x in criticals(pod["name"], cut, settings, Form("cut off"))}
                more = {x for x in more if x.key not in lasting}
            found += [(form.name, x) for x in sorted(more, key=str)]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay all recordings, or those whose name contains a word, in every form."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="recordings whose name contains one of these"
    )
    parser.add_argument("--form", default="", help="only forms whose name contains this")
    parser.add_argument("--late", type=int, default=STARTS, help=f"late starts (default: {STARTS})")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = parser.parse_args(arguments)
    folders = sorted(x.parent for x in TRACES.glob("*/scenario.json"))
    folders = [x for x in folders if not chosen.words or any(word in x.name for word in chosen.words)]
    wrong = 0
    with ProcessPoolExecutor(chosen.jobs, get_context("fork")) as pool:
        for folder, more in zip(
            folders, pool.map(partial(added, starts=chosen.late, only=chosen.form), folders), strict=True
        ):
            wrong += len(more)
            sys.stdout.write(f"{'BAD ' if more else 'ok  '}{folder.name}\n")
            for form, x in more:
                sys.stdout.write(
                    f"      {form}: {x.detector} {x.task} on {x.pod}, {x.confidence}: {x.summary}\n"
                )
            sys.stdout.flush()
    sys.stdout.write(f"{len(folders)} recordings; {wrong} criticals added by knowing less\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
