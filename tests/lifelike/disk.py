"""What happens to a state directory while nobody runs: it is copied without its times, its files are damaged."""

from __future__ import annotations

import time
from pathlib import Path

FOOTER_BYTES = 53


def copy_without_times(source: Path, target: Path, bytes_per_s: float = 0) -> None:
    """Copy as `kubectl cp`, `cp -r`, `rsync -r` and a sync from an object store do: in order of names, times not kept.

    Args:
        source: A directory.
        target: Its copy; is made.
        bytes_per_s: How fast the volume takes it; 0 = as fast as it can.
    """
    target.mkdir(parents=True)
    for entry in sorted(source.iterdir()):
        if entry.is_dir():
            copy_without_times(entry, target / entry.name, bytes_per_s)
            continue
        content = entry.read_bytes()
        if bytes_per_s:
            time.sleep(len(content) / bytes_per_s)
        (target / entry.name).write_bytes(content)


def damage(root: Path, pattern: str, how: str, number: str = "0") -> None:
    """Damage every file below `root` that matches.

    Args:
        root: The state directory.
        pattern: Glob below it; must match something.
        how: `truncate` (to `number` bytes), `no-footer` (its last 53 bytes become zeros), `flip` (one bit of the byte
            at `number`), `remove`.
        number: See `how`.
    """
    found = sorted(path for path in root.glob(pattern) if path.is_file())
    assert found, f"nothing matches {pattern}"
    for path in found:
        content = bytearray(path.read_bytes())
        if how == "remove":
            path.unlink()
            continue
        if how == "truncate":
            del content[int(number) :]
        elif how == "no-footer":
            content[-FOOTER_BYTES:] = bytes(FOOTER_BYTES)
        else:
            assert how == "flip", f"no such damage: {how}"
            content[int(number)] ^= 1
        path.write_bytes(content)
