"""The charts under the oldest Helm that they promise; `tests/cluster` repeats the scenarios under the newest ones."""

from __future__ import annotations

import pytest

from tests.support.charts import APPLICATION, Helm, consumer, program


@pytest.fixture(scope="session")
def chart() -> Helm:
    return Helm(program("helm"), APPLICATION)


@pytest.fixture(scope="session")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Give somebody else's chart that includes the library chart."""
    return Helm(program("helm"), consumer(tmp_path_factory.mktemp("charts")))
