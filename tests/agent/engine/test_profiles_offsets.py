"""Profiles: whether stores have the column family `offsets` now."""

from __future__ import annotations

import pytest

from agent.engine.profiles import Profiles
from agent.inventory.model import Application
from agent.inventory.settings import SettingsBook
from tests.support.scenario_case import at, database, store, task

PLAIN, OFFSETS = ("default",), ("default", "offsets")


@pytest.mark.parametrize(
    ("families", "plain", "has"),
    [
        pytest.param((), 0, "4.3.0 or later", id="wiped, and nothing came after it"),
        pytest.param((OFFSETS,), 10, "4.3.0 or later", id="upgraded"),
        pytest.param((OFFSETS, PLAIN), 30, "4.3.0 or later", id="beside a store of another making"),
        pytest.param((PLAIN,), 30, "any release", id="recreated by an older release"),
    ],
)
def test_family_that_is_gone(families, plain, has):
    """The family was last written at 20 s; newer stores without it, and none with it, show that it is gone."""
    app = Application("app", offsets_family_us=at(20), plain_us=at(plain) if plain else 0)
    app.tasks["0_0"] = task(*(store([database(families=x)], name=str(i)) for i, x in enumerate(families)))
    assert str(Profiles(SettingsBook({}, {})).of(app).range) == has
