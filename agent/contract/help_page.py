"""What the command lines of agent and rollup share: the help of a command in one form, and a late `--version`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent.contract.exit_codes import Exit, codes_text


class HelpPage(NamedTuple):
    """What `COMMAND --help` says beside the options."""

    line: str  # its line in the list of commands
    synopsis: str  # what has to be given
    about: str  # what it is for
    codes: Mapping[Exit, str]  # its exit codes, where its own words say more than those of the table
    after: str  # what comes below them: examples (one command each), where to read on

    def add_to(
        self, commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str
    ) -> argparse.ArgumentParser:
        """Add the command with its help."""
        return commands.add_parser(
            name,
            help=self.line,
            usage=f"%(prog)s {self.synopsis}",
            description=self.about,
            epilog=f"{codes_text(self.codes)}\n{self.after}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )


class Print(argparse.Action):
    """Print the text that `const` makes, and exit; made only when asked for, as every command makes the parser."""

    def __init__(self, option_strings: list[str], const: Callable[[], str], help: str, **_: object) -> None:  # noqa: A002 - argparse's name
        """Take no value."""
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, const=const, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and exit with 0."""
        sys.stdout.write(self.const())
        parser.exit()
