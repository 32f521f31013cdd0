"""`spool DIR`: one line about what waits on the agent's own volume."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agent.contract.codec import rfc3339


def add_spool(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser, and what answers it."""
    parser.add_argument("directory", type=Path, metavar="SPOOL_DIR", help="the agent's --spool")
    parser.set_defaults(command=print_status)


def print_status(chosen: argparse.Namespace) -> int:
    """Print the line.

    Raises:
        SpoolError: it cannot be read as a spool.
    """
    from agent.ship.status import status_of

    found = status_of(chosen.directory)
    oldest = "" if found.oldest_at_us is None else f", the oldest of {rfc3339(found.oldest_at_us)[:19]}Z"
    rejected = f"; {found.rejected} segments rejected by the sink" if found.rejected else ""
    damaged = "; a damaged database is kept as spool.db.bad" if found.has_damaged else ""
    sys.stdout.write(
        f"{found.segments} segments wait, {found.records} records{oldest}; {found.size_bytes:,} bytes on disk"
        f"{rejected}{damaged} (as of the last checkpoint)\n"
    )
    return 0
