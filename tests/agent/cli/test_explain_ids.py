"""`explain` with an id that only the events of agents know."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("asked", ["0123456789abcdef", "i-8e2475e90569", "orders/0_3"])
def test_the_missing_option_is_named(statewarden: Callable, asked: str) -> None:
    """Such an id is not called an unknown detector: it takes `--events`."""
    said = statewarden("explain", asked)
    assert said.code == 2
    assert said.complaint.startswith(f"statewarden: {asked}: add --events DIR: ")
