"""What a sink is, and the name under which it gets a segment."""

from __future__ import annotations

import hashlib
from typing import Protocol
from urllib.parse import quote

_LONGEST_UID = 100


class Sink(Protocol):
    """Takes sealed segments. Taking the same one twice is harmless."""

    def put(self, name: str, payload: bytes) -> None:
        """Store a segment; returning is the acknowledgement, so the data is safe by then.

        Args:
            name: `<pod uid>/<boot>-<first>-<last>`; the same name always has the same payload.
            payload: JSON lines, uncompressed.

        Raises:
            RetryableShipError: it may work later.
            PermanentShipError: it will never work for this segment.
        """
        ...


def object_name(pod_uid: str, segment_name: str) -> str:
    """Name a segment for a sink: one folder per pod, safe characters only, distinct pods stay distinct."""
    folder = quote(pod_uid, safe="", errors="backslashreplace").replace("~", "%7E") or "unknown"
    if folder.startswith("."):
        folder = f"%2E{folder[1:]}"  # no hidden folder, no `..`
    if len(folder) > _LONGEST_UID:
        folder = hashlib.sha256(pod_uid.encode("utf-8", "backslashreplace")).hexdigest()[:32]
    return f"{folder}/{segment_name}"
