"""An agent that polls is not surer than one that is notified: recordings in which two changes meet between looks."""

from __future__ import annotations

import pytest

from tests.evaluate.polled import TRACES, surer


@pytest.mark.parametrize(
    "name",
    [
        "benign-8574-finished-2.1.1",  # the checkpoint of the first owner, and the store that the second made anew
        "control-8187-2.2.2",  # deleted by a cleaner, and restored in full
    ],
)
def test_nothing_is_surer(name: str) -> None:
    assert surer(TRACES / name) == []
