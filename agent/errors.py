"""The agent's errors; `cli.main.code_of` has their exit codes.

Expected trouble while reading is a value (`inventory.disk.Unseen`), not one of these.
"""

from __future__ import annotations


class StatewardenError(Exception):
    """Base of every error that the agent raises on purpose."""


class ConfigError(StatewardenError):
    """Settings are wrong; the message lists every problem."""


class UsageError(StatewardenError):
    """Wrong use; one line for stderr."""


class UnreadError(UsageError):
    """What was asked for is there, and cannot be read or not be judged; one line for stderr."""


class LayoutError(StatewardenError):
    """A file does not have the form that Kafka Streams gives it."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        """Remember the reason and, for text files, the 1-based line."""
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.line = line


class CheckpointFormatError(LayoutError):
    """Not a well-formed offset checkpoint."""


class ProcessFileError(LayoutError):
    """Not a well-formed process metadata file."""


class TraceError(StatewardenError):
    """A trace cannot be read, or is truncated; says file, line and what was expected."""


class WatchError(StatewardenError):
    """Watching failed."""


class WatchLimitError(WatchError):
    """A kernel limit stops the watch; names the sysctl and its value."""


class WatchLostError(WatchError):
    """The notification backend died."""


class HomeError(StatewardenError):
    """The agent's own directory, or its own file in it, cannot be used."""


class BaselineError(HomeError):
    """What the agent kept for its restart cannot be read or written; says why."""


class SpoolError(StatewardenError):
    """The spool cannot be used."""


class SpoolFullError(SpoolError):
    """The spool's cap is reached and nothing may be dropped."""


class SpoolInUseError(SpoolError):
    """Another agent uses the spool."""


class ShipError(StatewardenError):
    """A segment was not delivered."""


class RetryableShipError(ShipError):
    """Try again after `delay_s` seconds."""

    def __init__(self, reason: str, delay_s: float = 1.0) -> None:
        """Remember the delay."""
        super().__init__(reason)
        self.delay_s = delay_s


class PermanentShipError(ShipError):
    """Trying again cannot help; the segment is set aside."""
