"""The rollup's errors.

Unreadable lines are not one of these: they are rows of the quarantine table.

RollupError
├── UsageError           wrong use
├── UnreadError          an input is there and cannot be read
│   ├── DamagedError     a file of bronze cannot be read: names it and what to do
│   └── SourceError      an object store or broker that does not answer, refuses, or has not what was asked for
├── JarError             jars that a source needs are missing, cannot be fetched, or are not the known ones
└── JavaNotFoundError    no Java runtime; names the three ways to give one
"""

from __future__ import annotations

from typing import ClassVar

from agent.contract.exit_codes import Exit


class RollupError(Exception):
    """Base of every error that the rollup raises on purpose; its text is one clear line.

    Attributes:
        code: What a command ends with that it ended.
    """

    code: ClassVar[Exit] = Exit.WRONG_USE


class UsageError(RollupError):
    """Wrong arguments, or an input or output directory that cannot be used."""


class UnreadError(RollupError):
    """An input is there, or should be, and cannot be read."""

    code: ClassVar[Exit] = Exit.UNREAD


class DamagedError(UnreadError):
    """A file of bronze cannot be read, or compaction would lose events of it."""


class SourceError(UnreadError):
    """A source is not reachable, refuses the credentials, or has not what was asked for."""


class JarError(RollupError):
    """Jars that a source needs are missing, cannot be fetched, or are not the known ones."""


class JavaNotFoundError(RollupError):
    """Spark needs a Java runtime and none was found."""
