"""One at a time on a bronze directory: two runs of `ingest` would add events twice, two of `compact` move files."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_rollup.errors import UsageError

CLAIM = "_intake"
"""File in bronze that the running `ingest` has locked; the kernel frees it however that ends."""

UPKEEP = "_upkeep"
"""The same for `compact`."""

_WORK = {CLAIM: "another ingest", UPKEEP: "another compact"}


@contextmanager
def claimed(bronze: Path, claim: str = CLAIM) -> Iterator[None]:
    """Keep others out until the block ends.

    Raises:
        UsageError: another one is at work; tells its process.
    """
    bronze.mkdir(parents=True, exist_ok=True)
    with (bronze / claim).open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise UsageError(
                f"{_WORK[claim]} is at work on {bronze} ({file.read().strip()}): wait for its end"
            ) from error
        except OSError as error:
            print(
                f"statewarden-rollup: {bronze} knows no locks ({error}); let no two runs overlap",
                file=sys.stderr,
            )
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        file.flush()
        yield
