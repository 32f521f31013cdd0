"""`completion SHELL`: the scripts are generated (`tools/completion`), so that no library is needed here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

SHELLS = ("bash", "zsh", "fish")


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser, and what answers it."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.set_defaults(command=print_completion)


def print_completion(chosen: argparse.Namespace) -> int:
    """Print the script."""
    script = Path(__file__).with_name("completions") / f"statewarden.{chosen.shell}"
    sys.stdout.write(script.read_text("utf-8"))
    return 0
