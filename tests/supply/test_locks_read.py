"""A lock is read as pip reads it: one version each, and an entry for other platforms is known as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.sbom.locks import SHIPPED, parse_lock, read_lock

LOCK = """\
psutil==7.2.2 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
Typing_Extensions==4.16.0 ; python_full_version < '3.13' \\
    --hash=sha256:cc
"""


def test_names_versions_and_markers() -> None:
    psutil, typing = parse_lock(LOCK)
    assert (psutil.name, psutil.version) == ("psutil", "7.2.2")
    assert (typing.name, typing.version) == ("typing-extensions", "4.16.0")
    assert typing.is_for({"python_full_version": "3.12.1"})
    assert not typing.is_for({"python_full_version": "3.13.0"})
    assert psutil.is_for({"python_full_version": "3.13.0"})


def test_what_is_not_pinned_is_refused() -> None:
    with pytest.raises(ValueError, match="psutil>=7"):
        parse_lock("psutil>=7\n    --hash=sha256:aa\n")


@pytest.mark.parametrize("lock", SHIPPED)
def test_the_committed_locks_are_read(repository: Path, lock: str) -> None:
    assert {"prometheus-client", "psutil", "watchdog"} <= {one.name for one in read_lock(repository, lock)}
