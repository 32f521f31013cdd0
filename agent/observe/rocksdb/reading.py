"""Bounded reads of whole files through a `Disk`."""

from __future__ import annotations

from agent.inventory.disk import Disk, Unseen

_CHUNK_BYTES = 256 << 10


def read_whole(disk: Disk, path: str, limit_bytes: int) -> bytes | Unseen:
    """Read a file to its end, piece by piece.

    Returns:
        Its content; Unseen.TOO_LARGE if it has more than `limit_bytes`, or what the disk says.
    """
    pieces: list[bytes] = []
    size = 0
    while True:
        piece = disk.read_at(path, size, _CHUNK_BYTES)
        if isinstance(piece, Unseen):
            return piece
        pieces.append(piece)
        size += len(piece)
        if size > limit_bytes:
            return Unseen.TOO_LARGE
        if len(piece) < _CHUNK_BYTES:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
