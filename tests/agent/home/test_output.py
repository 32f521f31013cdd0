"""What a process says is read back, from memory or from a file without a name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.home.output import open_output


@pytest.mark.parametrize("in_memory", [True, False])
def test_what_a_process_says_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    """Whole, and nothing of it is left in the directory."""
    if in_memory and not hasattr(os, "memfd_create"):
        in_memory = False  # this build of Python has the other way only
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    with open_output(None if in_memory else tmp_path) as output:
        subprocess.run([sys.executable, "-c", "print('x' * 100_000)"], stdout=output, check=True)
        assert list(tmp_path.iterdir()) == []
        output.seek(0)
        assert output.read() == b"x" * 100_000 + b"\n"


def test_without_a_place_nothing_is_written_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory of temporary files may be anybody's, even below the state directory."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with pytest.raises(OSError, match="no directory"):
        open_output(None)
