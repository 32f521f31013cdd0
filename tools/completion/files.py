"""Where the scripts are, for the generator of all files."""

from __future__ import annotations

from agent.cli.catalogue import names_to_explain
from agent.cli.completion import SHELLS
from agent.cli.main import make_parser
from spark_rollup.arguments import parser
from tools.completion.scripts import SCRIPTS
from tools.completion.words import Program, read_program

KNOWN = {
    "id": names_to_explain(),
    "watch_mode": ("auto", "inotify", "poll"),
    "log_level": ("DEBUG", "INFO", "WARNING", "ERROR"),
    "metrics_detail": ("task", "store"),
}
"""What the settings check later than the parser does."""


def programs() -> tuple[Program, Program]:
    """Read both programs."""
    return read_program(make_parser(), KNOWN), read_program(parser(), {})


def completion_files() -> dict[str, str]:
    """Render every script: path in the repository -> text."""
    agent, rollup = programs()
    return {
        f"{folder}/completions/{program.name}.{shell}": SCRIPTS[shell](program)
        for program, folder in ((agent, "agent/cli"), (rollup, "spark_rollup"))
        for shell in SHELLS
    }
