"""One writer at a time on bronze: `ingest`, `compact` and `forget` wait for each other.

In a directory the claim is a lock that the kernel frees however its holder ends. An object store has no locks: there
the claim is an object that the store itself makes only once (`If-None-Match`), that its holder rewrites again and
again, and that others may take over once they have seen it unchanged for long enough (`If-Match`).
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_rollup.bronze.place import ObjectPath, Place
from spark_rollup.errors import UsageError
from spark_rollup.spark.failures import causes

CLAIM = "_claim"

PATIENCE_S = 600.0
"""How long a run waits for another one to end."""

POLL_S = 1.0

RENEW_S = 20.0
"""How often the claim in an object store is rewritten."""

STALE_S = 180.0
"""A claim that is not rewritten for this long was left behind by a run that is gone."""

_ALIVE = ", alive "
"""Between the holder and how often the claim was rewritten: each time its ETag is another one."""


@contextmanager
def claimed(bronze: Place, work: str = "ingest", spark: SparkSession | None = None) -> Iterator[None]:
    """Keep other writers out until the block ends; wait for the one that is running. A lost claim ends all jobs.

    Raises:
        UsageError: another one is still running after `PATIENCE_S`; the message names it.
    """
    holder = f"{work}, process {os.getpid()} on {os.uname().nodename}"
    if isinstance(bronze, ObjectPath):
        with _object_claimed(bronze, holder, spark):
            yield
        return
    bronze.mkdir(parents=True, exist_ok=True)
    with (bronze / CLAIM).open("a+", encoding="utf-8") as file:

        def other() -> str:
            file.seek(0)
            return file.read().strip()

        _wait(bronze, lambda: _lock(file.fileno(), bronze), other)
        file.truncate(0)
        file.write(f"{holder}\n")
        file.flush()
        yield


def _wait(bronze: Place, taken: Callable[[], bool], other: Callable[[], str]) -> None:
    """Try until it is taken; report once for which run this one waits."""
    ends_s, reported = time.monotonic() + PATIENCE_S, False
    while not taken():
        if time.monotonic() >= ends_s:
            raise UsageError(f"another run is working on {bronze} ({other()}): wait until it ends")
        if not reported:
            said = f"statewarden-rollup: waiting for another run on {bronze} ({other()}) to end"
            print(said, file=sys.stderr)
        reported = True
        time.sleep(POLL_S)


def _lock(descriptor: int, bronze: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        print(
            f"statewarden-rollup: {bronze} has no locks ({error}); let no two runs overlap", file=sys.stderr
        )
    return True


@contextmanager
def _object_claimed(bronze: ObjectPath, holder: str, spark: SparkSession | None) -> Iterator[None]:
    claim = bronze / CLAIM
    seen, since_s = None, 0.0

    def taken() -> bool:
        nonlocal seen, since_s
        if claim.create(f"{holder}\n"):
            return True
        if (etag := claim.etag()) != seen:
            seen, since_s = etag, time.monotonic()
            return False
        is_stale = bool(etag) and time.monotonic() - since_s >= STALE_S
        return is_stale and claim.replace_same(f"{holder}\n", str(etag))

    _wait(bronze, taken, lambda: _holder(claim))
    ended = threading.Event()
    thread = threading.Thread(target=_renew, args=(claim, holder, spark, ended), name="claim", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        try:
            if _holder(claim) == holder:
                claim.unlink()
        except (
            Py4JError
        ) as error:  # what was done is done: that must not fail for a claim that goes stale by itself
            why = next(causes(error))
            print(f"statewarden-rollup: {claim} stays for {STALE_S:.0f} s: {why}", file=sys.stderr)


def _holder(claim: ObjectPath) -> str:
    try:
        return claim.read_text().strip().partition(_ALIVE)[0]
    except FileNotFoundError:
        return "it ended just now"


def _renew(claim: ObjectPath, holder: str, spark: SparkSession | None, ended: threading.Event) -> None:
    """Rewrite the claim until the work ends; a run that lost it, or may have lost it, must not write any more.

    A store that does not answer is asked again, for as long as no other run may take the claim over.
    """
    number, renewed_s = 0, time.monotonic()
    while not ended.wait(RENEW_S):
        number += 1
        why = "another run took it over"
        try:
            etag = claim.etag()
            ours = etag is not None and _holder(claim) == holder
            if ours and claim.replace_same(f"{holder}{_ALIVE}{number}\n", str(etag)):
                renewed_s = time.monotonic()
                continue
        except Py4JError as error:
            if time.monotonic() - renewed_s < STALE_S - 2 * RENEW_S:
                continue
            why = f"it cannot be renewed ({next(causes(error))})"
        print(f"statewarden-rollup: lost {claim}: {why}; this run stops", file=sys.stderr)
        if spark is not None:
            spark.sparkContext.cancelAllJobs()
        return
