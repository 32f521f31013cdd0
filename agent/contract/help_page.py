"""What the command lines of agent and rollup share: the help of a command in one form, and a late `--version`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from agent.contract.exit_codes import Exit, codes_text
from agent.contract.names import nearest


class Parser(argparse.ArgumentParser):
    """A parser that says which command, choice or option is spelt like one that it does not know."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse what a command does not know here: its own usage is shown, not that of the program."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Print usage, the message and what may have been meant; exit with 2."""
        asked, known = "", list[str]()
        if choice := _CHOICE.search(message):
            asked, known = choice[1], _QUOTED.findall(choice[2])
        elif option := _OPTION.search(message):
            asked, known = option[1], sorted(self._options())
        near = nearest(asked, known) if asked else []
        super().error(f"{message}; did you mean {' or '.join(near)}?" if near else message)

    def _options(self) -> set[str]:
        found = set(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found.update(*(x._options() for x in action.choices.values()))
        return found


_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_QUOTED = re.compile(r"'([^']+)'")
_OPTION = re.compile(r"unrecognized arguments: (--[\w-]+)")


class HelpPage(NamedTuple):
    """What `COMMAND --help` says beside the options."""

    line: str  # its line in the list of commands
    synopsis: str  # what has to be given
    about: str  # what it is for
    codes: Mapping[Exit, str]  # its exit codes, where its own words say more than those of the table
    after: str  # what comes below them: examples (one command each), where to read on

    def add_to(self, commands: argparse._SubParsersAction[Any], name: str) -> argparse.ArgumentParser:
        """Add the command with its help."""
        made: argparse.ArgumentParser = commands.add_parser(
            name,
            help=self.line,
            usage=f"%(prog)s {self.synopsis}",
            description=self.about,
            epilog=f"{codes_text(self.codes)}\n{self.after}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        return made


class Print(argparse.Action):
    """Print the text that `const` makes, and exit; made only when asked for, as every command makes the parser."""

    def __init__(self, option_strings: list[str], const: Callable[[], str], help: str, **_: object) -> None:  # noqa: A002 - argparse's name
        """Take no value."""
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, const=const, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and exit with 0."""
        sys.stdout.write(self.const())
        parser.exit()
