"""The rollup's errors. Unreadable lines are not one of these: they are rows of the quarantine table.

RollupError
├── UsageError           wrong use or unreadable input; one line on stderr, exit code 2
└── JavaNotFoundError    no Java runtime; names the three ways to give one
"""

from __future__ import annotations


class RollupError(Exception):
    """Base of every error that the rollup raises on purpose; its text is one clear line."""


class UsageError(RollupError):
    """Wrong arguments, or an input or output directory that cannot be used."""


class JavaNotFoundError(RollupError):
    """Spark needs a Java runtime and none was found."""
