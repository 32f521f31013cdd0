"""Exit codes: one table for every command of both programs; docs/exit-codes.md is made of it.

A gate, a CronJob and a script go by these numbers. Whatever is not certain has its own number, so that nothing can be
taken for an all-clear, or for a finding, that is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Exit(IntEnum):
    """What a command ends with."""

    CLEAR = 0
    FOUND = 1
    WRONG_USE = 2
    UNREAD = 3
    BROKE = 4

    @property
    def meaning(self) -> str:
        """What it says of any command."""
        return _MEANINGS[self]


_MEANINGS = {
    Exit.CLEAR: "nothing found at the requested level, and everything was read; or done",
    Exit.FOUND: "something was found",
    Exit.WRONG_USE: "wrong use: an argument, a setting, a path, a missing library",
    Exit.UNREAD: "undecided: something could not be read or judged",
    Exit.BROKE: "internal error: an output failed, or a bug in statewarden",
}

SIGNALS = "130  Ctrl-C; 143 SIGTERM"  # a command that a signal ends: 128 + its number
_ALWAYS = (Exit.WRONG_USE, Exit.BROKE)  # codes that any command may end with


def answer(*, found: bool, unread: bool) -> Exit:
    """Give the code of a command that searched: what was found counts, whatever else could not be read."""
    if found:
        return Exit.FOUND
    return Exit.UNREAD if unread else Exit.CLEAR


def codes_of(own: Mapping[Exit, str]) -> dict[Exit, str]:
    """Give the codes of one command in order: in its own words, else in those of all."""
    return {code: own.get(code, code.meaning) for code in Exit if code in own or code in _ALWAYS}


def codes_text(own: Mapping[Exit, str]) -> str:
    """Write the section of a command's help."""
    lines = (f"  {code.value:<5}{text}\n" for code, text in codes_of(own).items())
    return f"exit codes:\n{''.join(lines)}  {SIGNALS}\n"
