"""Names that are not known, and what may have been meant."""

from __future__ import annotations

import pytest

from agent.contract.names import nearest, not_here


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("ordres", ["orders"]),
        ("ORDERS", ["orders"]),
        ("myapp", ["MyApp"]),
        ("billing", []),
    ],
)
def test_the_nearest_names_are_spelt_as_they_are(asked, found):
    """Case does not matter in what is asked; the answer has it."""
    assert nearest(asked, ["payments", "orders", "MyApp"]) == found


def test_names_that_differ_in_case_only_are_all_named():
    """None of them hides another."""
    assert nearest("app", ["App", "APP"]) == ["APP", "App"]


@pytest.mark.parametrize(
    ("named", "there", "said"),
    [
        (["orders"], ["orders"], None),
        (["ordres"], [], None),
        (["billing"], ["orders"], "--set: no application billing here; there is: orders"),
        (
            ["ordres", "billing", "shop"],
            ["shop", "orders"],
            "--set: no application billing, ordres here; did you mean orders? there is: orders, shop",
        ),
        (["x"], list("abcdef"), "--set: no application x here; there is: a, b, c, d, e, ..."),
    ],
)
def test_what_is_not_there_is_said_with_what_is(named, there, said):
    """Nothing is said where all is there, or where nothing is there yet."""
    assert not_here("--set", named, there) == said
