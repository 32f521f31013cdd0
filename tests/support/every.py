"""One test over all rows of a page or a table: each row that fails is named, and none is an item of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable

import pytest


def every(
    names: str, rows: Iterable[object], ids: Callable[..., object] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each row as `pytest.mark.parametrize` does, in one item; its fixtures are shared.

    A row is a value for each parameter, or one of several together; `ids` are what it is called where it fails.
    """
    parameters, listed = [name.strip() for name in names.split(",")], list(rows)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run(**fixtures: object) -> None:
            failed: list[BaseException] = []
            for row in listed:
                values = row if isinstance(row, tuple) and len(parameters) > 1 else (row,)
                try:
                    test(**fixtures, **dict(zip(parameters, values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - each failure is raised below
                    error.add_note(f"of {', '.join(str(ids(value)) for value in values)}")
                    failed.append(error)
            assert listed, "there is no row"
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(listed)} rows", failed)

        own = inspect.signature(test)
        kept = [x for name, x in own.parameters.items() if name not in parameters]
        run.__signature__ = own.replace(parameters=kept)  # type: ignore[attr-defined]
        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        run.__qualname__ = test.__qualname__
        return run

    return decorate
