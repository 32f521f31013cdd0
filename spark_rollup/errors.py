"""The rollup's errors. Unreadable lines are not one of these: they are rows of the quarantine table.

RollupError
├── UsageError           wrong use or unreadable input; one line on stderr, exit code 2
├── DamagedError         a file of bronze cannot be read: names it and what to do
├── SourceError          an object store or broker that does not answer, refuses, or has not what was asked for
├── JarError             jars that a source needs are missing, cannot be fetched, or are not the known ones
└── JavaNotFoundError    no Java runtime; names the three ways to give one
"""

from __future__ import annotations


class RollupError(Exception):
    """Base of every error that the rollup raises on purpose; its text is one clear line."""


class UsageError(RollupError):
    """Wrong arguments, or an input or output directory that cannot be used."""


class DamagedError(RollupError):
    """A file of bronze cannot be read, or compaction would lose events of it."""


class SourceError(RollupError):
    """A source is not reachable, refuses the credentials, or has not what was asked for."""


class JarError(RollupError):
    """Jars that a source needs are missing, cannot be fetched, or are not the known ones."""


class JavaNotFoundError(RollupError):
    """Spark needs a Java runtime and none was found."""
