"""Draw docs/scan.svg: a real scan, on a terminal, of the directory that a real Kafka Streams left after a kill."""

from __future__ import annotations

import io
import os
import re
import tarfile
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from agent.cli import main as statewarden
from agent.cli.incident_text import WIDTH

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = "tests/data/snapshots/kafka-20685-4.1.2.tar.gz"
"""Kafka Streams 4.1.2 under exactly-once, killed with records flushed that no transaction had committed."""

RECORDED_ID = "kafka-20685-4-1-2-014328"
APPLICATION = "orders"
"""What the application is called in the picture: its directory, and the topics in its checkpoints."""

COMMAND = (
    ("scan", "STATE_DIR", "--set", "processing_guarantee=exactly_once_v2"),
    ("--set", "kafka_streams_version=4.1.2", "--set", "num_standby_replicas=0"),
)

_FOREIGN = re.compile(r"\s*(?:@font-face \{.*?\}|<!--.*?-->)", re.DOTALL)
"""What rich writes that asks a foreign host for its font, or names one."""


@cache
def render_scan_picture() -> str:
    """Run the command and draw what it prints."""
    typed = " \\\n      ".join(" ".join(words) for words in COMMAND)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # lines break by the length of its name
        state = Path(folder) / "state"
        _unpack(state)
        words = [str(state) if x == "STATE_DIR" else x for words in COMMAND for x in words]
        printed = _on_terminal(words).replace(str(state.resolve()), "STATE_DIR")
    console = Console(record=True, width=WIDTH + 1, file=io.StringIO())
    console.print(Text.from_ansi(f"$ statewarden {typed}\n{printed.rstrip()}\n"), soft_wrap=True)
    drawn = console.export_svg(title="statewarden", theme=DIMMED_MONOKAI, unique_id="scan")
    return _FOREIGN.sub("", drawn)


def _unpack(state: Path) -> None:
    """Unpack the recorded directory under the application's new name; all times stay."""
    with tarfile.open(ROOT / SNAPSHOT) as archive:
        archive.extractall(state, filter="data")
    (state / RECORDED_ID).rename(state / APPLICATION)
    for checkpoint in state.glob("*/*/.checkpoint"):
        times = checkpoint.stat()
        checkpoint.write_text(checkpoint.read_text("utf-8").replace(RECORDED_ID, APPLICATION), "utf-8")
        os.utime(checkpoint, ns=(times.st_atime_ns, times.st_mtime_ns))


class _Terminal(io.StringIO):
    """A terminal that does not say its size."""

    def isatty(self) -> bool:
        return True


def _on_terminal(arguments: list[str]) -> str:
    """Run statewarden with its standard output on a terminal and return what it writes there, colours included."""
    terminal = _Terminal()
    colourless = os.environ.pop("NO_COLOR", None)
    try:
        with redirect_stdout(terminal), redirect_stderr(io.StringIO()):
            code = statewarden(arguments)
    finally:
        if colourless is not None:
            os.environ["NO_COLOR"] = colourless
    if code not in (0, 1):
        raise RuntimeError(f"statewarden {' '.join(arguments)} ended with {code}; run it by hand")
    return terminal.getvalue()
