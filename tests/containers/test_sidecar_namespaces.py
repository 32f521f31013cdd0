"""The sidecar in namespaces of its own: other PIDs, read-only mount, another user of the same group, no privileges."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.containers.namespace_pod import MESSAGE, NamespacePod, play

pytestmark = [pytest.mark.e2e, pytest.mark.inotify]


@pytest.fixture
def pod() -> Iterator[NamespacePod]:
    """Give one, in a directory that every user may enter, which pytest's own are not."""
    if os.geteuid() != 0:
        pytest.skip(MESSAGE)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        one = NamespacePod(Path(name))
        try:
            yield one
        finally:
            one.close()


@pytest.mark.slow
def test_watch_lock_query_and_finding_across_namespaces(
    pod: NamespacePod, eventually: Callable[..., object]
) -> None:
    """A holder that the agent cannot see as a process: its locks are seen, its damage found, its release noticed."""
    play(pod, lambda condition: eventually(condition, 20))
    found = {(x["detector"], x["severity"]) for x in pod.findings()}
    assert ("resurrected-checkpoint", "critical") in found
    assert not any(detector == "auditor-blind" for detector, _ in found)
