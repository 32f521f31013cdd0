"""Content of a recorded write, kept as it is in the trace: most of it is never read."""

from __future__ import annotations

import binascii

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class Encoded:
    """Bytes in base64. It has a length and gives slices, as bytes do, and decodes no more than a slice needs.

    Of the data files in a recording, two thirds of its bytes, the agent reads a fiftieth.
    """

    __slots__ = ("_size_bytes", "_text")

    def __init__(self, text: str) -> None:
        """Check the text; checking takes a quarter of the time of decoding.

        Raises:
            ValueError: it is not base64.
        """
        padding = text.endswith("=") + text.endswith("==")
        strange = text.encode("ascii").translate(None, _ALPHABET)
        if len(text) % 4 or strange != b"=" * padding:
            raise ValueError("not base64")
        self._text = text
        self._size_bytes = len(text) // 4 * 3 - padding

    def __len__(self) -> int:
        """Count the bytes."""
        return self._size_bytes

    def __getitem__(self, part: slice) -> bytes:
        """Decode the bytes of a slice; its step is 1."""
        start, end, _ = part.indices(self._size_bytes)
        first = start // 3
        decoded = binascii.a2b_base64(self._text[first * 4 : -(-end // 3) * 4])
        return decoded[start - first * 3 : end - first * 3] if start < end else b""
