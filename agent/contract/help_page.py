"""The help of one command, in the form that both programs give it."""

from __future__ import annotations

from typing import NamedTuple


class HelpPage(NamedTuple):
    """What `COMMAND --help` says beside the options.

    Attributes:
        line: Its line in the list of commands.
        synopsis: What has to be given.
        about: What it is for.
        after: What comes below the options: exit codes, examples (one command each), where to read on.
    """

    line: str
    synopsis: str
    about: str
    after: str

    def for_parser(self) -> dict[str, str]:
        """Give it by the names that argparse has for its parts."""
        return {
            "help": self.line,
            "usage": f"%(prog)s {self.synopsis}",
            "description": self.about,
            "epilog": self.after,
        }
