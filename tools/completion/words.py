"""What a command line can go on with, read from a parser."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

DIRECTORIES = ("DIR", "WHERE", "OUT")
FILES = ("FILE", "PATH", "OUT.tar.gz", "TRACE.jsonl.gz")
"""Beginnings or ends of metavars whose values are places on disk; the longer word decides."""


class Kind(Enum):
    """What a value is."""

    WORD = "one of some words"
    FILE = "a file"
    DIRECTORY = "a directory"
    OTHER = "something that no shell knows"


@dataclass(frozen=True)
class Value:
    """What can be written in one place.

    Args of the dataclass:
        kind: What it is.
        name: As the help calls it.
        words: All of them, of a word.
    """

    kind: Kind
    name: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """One option: its long name, its help, its value (None = it takes none), and whether it may be repeated."""

    name: str
    text: str
    value: Value | None
    is_repeated: bool


@dataclass(frozen=True)
class Command:
    """One command: name, line in the list, options, and what it takes beside them, in order."""

    name: str
    line: str
    options: tuple[Option, ...]
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Program:
    """A program: its name, its own options, its commands."""

    name: str
    options: tuple[Option, ...]
    commands: tuple[Command, ...]


def read_program(parser: argparse.ArgumentParser, known: Mapping[str, Sequence[str]]) -> Program:
    """Read a parser.

    Args:
        parser: Of the whole program.
        known: Name of an argument -> words for it that the parser does not know.
    """
    commands = next(x for x in parser._actions if isinstance(x, argparse._SubParsersAction))
    lines = {str(x.dest): str(x.help) for x in commands._choices_actions}
    return Program(
        parser.prog,
        _options(parser, known),
        tuple(
            Command(
                name,
                lines[name],
                _options(command, known),
                tuple(_value(x, known) for x in command._actions if not x.option_strings),
            )
            for name, command in commands.choices.items()
        ),
    )


def _options(parser: argparse.ArgumentParser, known: Mapping[str, Sequence[str]]) -> tuple[Option, ...]:
    return tuple(
        Option(
            x.option_strings[-1],
            str(x.help),
            None if x.nargs == 0 else _value(x, known),
            isinstance(x, argparse._AppendAction),
        )
        for x in parser._actions
        if x.option_strings
    )


def _value(action: argparse.Action, known: Mapping[str, Sequence[str]]) -> Value:
    name = str(action.metavar)
    words = tuple(str(x) for x in action.choices or known.get(action.dest, ()))
    return Value(Kind.WORD if words else _kind(name), name, words)


def _kind(name: str) -> Kind:
    parts = {name, *name.split("_"), *name.split("|"), name.partition(".")[0]}
    if parts & set(FILES):
        return Kind.FILE
    return Kind.DIRECTORY if parts & set(DIRECTORIES) else Kind.OTHER
