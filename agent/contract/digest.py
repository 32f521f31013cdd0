"""SHA-256 for ids. Not for secrets: those who need it there take `hashlib`.

`hashlib` loads OpenSSL's libcrypto, 3.7 MiB in every pod. CPython's own implementation is asked for first, the way
`random` of the standard library does it; the digests are the same.
"""

from __future__ import annotations

try:
    from _sha256 import sha256  # type: ignore[import-not-found] # up to CPython 3.11
except ImportError:
    try:
        from _sha2 import sha256  # type: ignore[import-not-found] # from 3.12 on
    except ImportError:
        from hashlib import sha256


def hex_digest(text: bytes) -> str:
    """Give the SHA-256 of some bytes, 64 hexadecimal digits."""
    return str(sha256(text).hexdigest())
