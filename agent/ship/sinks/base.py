"""What a sink is, the name under which it gets a segment, and what sinks share."""

from __future__ import annotations

import gzip
import importlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from agent.contract.digest import hex_digest
from agent.delivery import ShipSettings, Target, parse_target
from agent.errors import ConfigError, PermanentShipError

SUFFIX = ".jsonl.gz"
FIX_DELAY_S = 60.0  # wait after a refusal that an operator must fix: rights, an expired token, a wrong path

_LONGEST_UID = 100


class Sink(Protocol):
    """Takes sealed segments. Taking the same one twice is harmless."""

    def put(self, name: str, payload: bytes) -> None:
        """Store a segment; returning is the acknowledgement, so the data is safe by then.

        `name`: `<pod uid>/<boot>-<first>-<last>`; the same name always has the same payload. Raises
        `RetryableShipError`: it may work later. Raises `PermanentShipError`: it will never work for this segment.
        """
        ...


Make = Callable[[Target, ShipSettings, Path | None], Sink]
"""What each sink's module has as `make`: target, settings and the audited directory in."""


def object_name(pod_uid: str, segment_name: str) -> str:
    """Name a segment for a sink: one folder per pod, safe characters only, distinct pods stay distinct."""
    folder = quote(pod_uid, safe="", errors="backslashreplace").replace("~", "%7E") or "unknown"
    if folder.startswith("."):
        folder = f"%2E{folder[1:]}"  # no hidden folder, no `..`
    if len(folder) > _LONGEST_UID:
        folder = hex_digest(pod_uid.encode("utf-8", "backslashreplace"))[:32]
    return f"{folder}/{segment_name}"


def packed(payload: bytes) -> bytes:
    """Compress a segment; the same lines give the same bytes, so no time goes into the header."""
    return gzip.compress(payload, compresslevel=6, mtime=0)


def require_same(there: bytes, payload: bytes, path: object) -> None:
    """Compare what is there already by content, not bytes: another zlib may compress the same lines differently.

    Raises `PermanentShipError`: it is another one.
    """
    try:
        same = gzip.decompress(there) == payload
    except (gzip.BadGzipFile, EOFError, zlib.error):
        same = False
    if not same:
        raise PermanentShipError(f"{path} is there already with another content")


def read_text(path: str) -> str:
    """Read a small text file that a setting names, such as a token, without the white space around it.

    Raises `ConfigError`: it cannot be read.
    """
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigError(f"cannot read {path}: {reason}; make it readable for the agent") from error


def read_secrets(folder: str) -> dict[str, str]:
    """Read a folder with one file per option, as Kubernetes mounts a Secret; empty without a folder.

    Raises `ConfigError`: folder or files cannot be read.
    """
    if not folder:
        return {}
    try:
        # a mounted Secret has `..data` and such beside the files
        paths = [path for path in sorted(Path(folder).iterdir()) if path.name[0] != "." and path.is_file()]
    except OSError as error:
        raise ConfigError(f"cannot read credentials_dir {folder}: {error.strerror}") from error
    return {path.name: read_text(str(path)) for path in paths}


def make_sink(ship_to: str, settings: ShipSettings, state_directory: Path | None) -> Sink:
    """Make the sink that the settings name.

    `ship_to`: a directory or a URL, checked by the settings. `state_directory`: what is audited; a directory sink
    must not lie in it. Raises `ConfigError`: a library is missing (the message names the extra to install), or a
    file or option is wrong.
    """
    target = parse_target(ship_to)
    make: Make = importlib.import_module(f"agent.ship.sinks.{target.kind.module}").make
    return make(target, settings, state_directory)
