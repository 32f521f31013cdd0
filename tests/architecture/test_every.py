"""One item over many rows names every row that fails."""

from __future__ import annotations

import pytest

from tests.support.every import every


def test_each_failure_is_named() -> None:
    """Of exceptions and of what pytest raises; the other rows are run all the same."""
    seen = []

    @every("first, second", [("a", 1), ("b", 2), ("c", 3)])
    def check(first: str, second: int) -> None:
        seen.append(first)
        if first == "b":
            pytest.fail("no")
        assert second < 3

    with pytest.raises(BaseExceptionGroup, match="2 of 3 rows") as caught:
        check()
    assert seen == ["a", "b", "c"]
    assert [x.__notes__ for x in caught.value.exceptions] == [["of b, 2"], ["of c, 3"]]


def test_no_row_is_a_failure() -> None:
    """A table that lost its rows proves nothing."""

    @every("row", [])
    def check(row: object) -> None: ...

    with pytest.raises(AssertionError, match="no row"):
        check()
