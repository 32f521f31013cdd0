"""What the demo shows: one line per event, with colour on a terminal, safe to use from several threads."""

from __future__ import annotations

import sys
import textwrap
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from shutil import get_terminal_size
from typing import Any, TextIO

Finding = Mapping[str, Any]
Incident = Mapping[str, Any]

_COLOURS = {"critical": "1;31", "warning": "33", "info": "36", "good": "32", "head": "1", "dim": "2"}
POD_WIDTH = 11


class Screen:
    """Prints lines with the seconds since `restart_clock`."""

    def __init__(self, stream: TextIO = sys.stdout, *, colour: bool | None = None) -> None:
        """Use colour if the stream is a terminal, unless asked otherwise."""
        self._stream = stream
        self._colour = stream.isatty() if colour is None else colour
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._width = min(get_terminal_size((110, 24)).columns, 130)

    def restart_clock(self) -> None:
        """Count seconds from now."""
        self._started = time.monotonic()

    def say(self, text: str = "", kind: str = "") -> None:
        """Print one line."""
        code = _COLOURS.get(kind) if self._colour else None
        with self._lock:
            self._stream.write(f"\x1b[{code}m{text}\x1b[0m\n" if code else f"{text}\n")
            self._stream.flush()

    def event(self, pod: str, text: str, kind: str = "") -> None:
        """Print what just happened on a pod."""
        self.say(
            self._cut(f"{time.monotonic() - self._started:6.1f} s  {pod:<{POD_WIDTH}} {printable(text)}"),
            kind,
        )

    def finding(self, pod: str, line: Finding) -> None:
        """Print a line of an agent's log that reports a finding."""
        severity = str(line["severity"])
        head = f"{severity.upper():<8} {line['detector']}"
        self.event(pod, f"{head} ({line.get('incident_id')}): {line['message']}", severity)

    def paragraph(self, label: str, text: str) -> None:
        """Print wrapped text behind a label."""
        lines = textwrap.wrap(printable(text), self._width - 12) or [""]
        for number, line in enumerate(lines):
            self.say(f"    {label if number == 0 else '':<7} {line}")

    def _cut(self, line: str) -> str:
        return line if len(line) <= self._width or not self._colour else line[: self._width - 1] + "…"


def printable(text: str) -> str:
    """Make text safe for a terminal: names on disk may hold control characters."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def urgent(incidents: Iterable[Incident], application_id: str | None = None) -> list[Incident]:
    """Take open incidents of warning and above; of one application, if one is given."""
    return [
        row
        for row in incidents
        if row["status"] == "open"
        and row["severity"] != "info"
        and application_id in (None, row["application_id"])
    ]


def show_verdict(screen: Screen, incidents: Sequence[Incident]) -> None:
    """Print the fleet audit's open incidents of warning and above: where, which bug, what is wrong, what to do."""
    found = urgent(incidents)
    if not found:
        screen.say("The fleet audit found nothing to warn about.")
    for incident in found:
        bug = ", ".join(incident["upstream"]) or "no upstream issue"
        tasks, pods = incident["tasks"], ", ".join(incident["pods"])
        about = f"task{'s' * (len(tasks) > 1)} {', '.join(tasks)}" if tasks else "all tasks"
        where = f"{about}{f' on {pods}' if pods else ''}  ({incident['application_id']})"
        screen.say()
        screen.say(f"  {incident['severity'].upper()}  {where}", incident["severity"])
        screen.paragraph("bug", f"{bug} · {incident['detector']}, {incident['confidence']}")
        screen.paragraph("what", incident["sentence"])
        screen.paragraph("do", incident["next_action"])
        count = len(incident["findings"])
        screen.paragraph("id", f"{incident['id']}, {count} finding{'s' * (count > 1)} of the audit")
