"""What went wrong, in one line: the innermost cause of a failure, and what helps where that is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from spark_rollup.errors import DamagedError

WHY_CHARS = 300
"""How much of a cause is shown."""

_UNREAD = re.compile(r"\[FAILED_READ_FILE\.\w+\] Encountered error while reading file (\S+?)\.(?:\s|$)")
_ABSENT = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.+?)\. SQLSTATE")
_IN_DAY = re.compile(r"(.*)/(events|kept)/day=[^/]*/.*")
_IN_TABLE = re.compile(r"(.*)/(quarantine|events|kept)(?:/[^/]*)?")
"""Bronze, and what is in it."""

_ENDED = (
    "Spark's Java process ended, perhaps out of memory: --spark-conf spark.driver.memory=8g gives it more"
)

_NO_CREDENTIALS = (
    "no credentials for the object store: they come from the environment (AWS_ACCESS_KEY_ID ...), the role of the pod "
    "or machine, or --spark-conf spark.hadoop.fs.s3a.*"
)

_DEADLY = (
    "OutOfMemoryError",
    "SparkContext was shut down",  # what is reported of a task that ran out of memory in local mode
    "SparkContext.dagScheduler()",
    "stopped SparkContext",
    "Py4JNetworkError",
    "ConnectionRefusedError",
    "ConnectionResetError",
)
"""Marks of a Java that ran out of memory or is gone."""

_HELP = (
    ("No space left on device", "the disk is full"),
    ("OutOfMemoryError", "Spark had too little memory: --spark-conf spark.driver.memory=8g gives it more"),
    (
        "JAVA_GATEWAY_EXITED",
        "Java ended before Spark was up: is JAVA_HOME a working Java 17, are JAVA_TOOL_OPTIONS right?",
    ),
    *((word, _NO_CREDENTIALS) for word in ("NoAwsCredentialsException", "Unable to load credentials")),
    *((word, _ENDED) for word in _DEADLY[1:]),
)
"""What is somewhere in a chain of causes, and what it means for a person."""


def message(error: BaseException) -> str:
    """Describe a failure in one line: what it means if that is known, and its innermost cause."""
    known = list(causes(error))
    meant = next((text for word, text in _HELP if any(word in cause for cause in known)), "")
    return f"{meant} ({_short(known[-1])})" if meant else _short(known[-1])


def is_deadly(error: BaseException) -> bool:
    """Return whether Java ran out of memory or is gone: what it was just reading may have done that."""
    return any(word in cause for cause in causes(error) for word in _DEADLY)


def damage(error: BaseException) -> DamagedError | None:
    """Recognise that a file which the rollup had written itself cannot be read; None = it is something else."""
    known = list(causes(error))
    text = " ".join(" ".join(cause.split()) for cause in known)
    unread, absent = _UNREAD.search(text), _ABSENT.search(text)
    path = unquote(unread[1]) if unread else absent[1] if absent else ""
    path = re.sub("^file:/+", "/", path)
    part = _IN_DAY.fullmatch(path) or _IN_TABLE.fullmatch(path)
    if part is None:
        return None
    bronze, name = part.groups()
    if name == "kept":
        then = f"compact --snapshots --bronze {bronze}` makes that day's snapshot again"
    else:
        then = f"ingest --input SEGMENTS --bronze {bronze} --again` brings back what it held"
    return DamagedError(
        f"{path} cannot be read ({_short(known[-1])}): `statewarden-rollup forget --bronze {bronze} --file {path}` "
        f"takes it out, then `statewarden-rollup {then}"
    )


def causes(error: BaseException) -> Iterator[str]:
    """List the chain of causes as texts, outermost first: Python's, and of each what Java says."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield from _java(link) or [_python(link)]
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _java(error: BaseException) -> list[str]:
    from py4j.protocol import Py4JError

    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found = []
    try:
        while thrown is not None:
            found.append(f"{thrown.getClass().getSimpleName()}: {thrown.getMessage()}")
            thrown = thrown.getCause()
    except (Py4JError, OSError, AttributeError):  # Java is gone meanwhile
        pass
    return found


def _python(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - Spark's exceptions ask Java for their texts, and Java may be gone
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _short(cause: str) -> str:
    lines = [line.strip() for line in cause.splitlines() if line.strip()]
    text = " ".join(lines[:2]) if lines else "no cause is given"
    return text if len(text) <= WHY_CHARS else text[:WHY_CHARS] + " ..."
