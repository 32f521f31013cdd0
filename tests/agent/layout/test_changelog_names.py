"""Which store a changelog topic belongs to."""

from __future__ import annotations

import pytest

from agent.layout.names import changelog_store


@pytest.mark.parametrize(
    ("topic", "store"),
    [
        ("app-s-changelog", "s"),
        ("app-my-store-changelog", "my-store"),
        ("app-changelog-changelog", "changelog"),
        ("other-s-changelog", None),
        ("app-s-repartition", None),
        ("orders", None),
        ("app-changelog", None),
        ("app--changelog", None),
        ("application-s-changelog", None),
    ],
)
def test_changelog_store(topic, store):
    """Application id, store and suffix; a source topic or another application's is none."""
    assert changelog_store(topic, "app") == store
