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
