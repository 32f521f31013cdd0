"""Where events go, read off one setting."""

from __future__ import annotations

import pytest

from agent.delivery import DIRECTORY, HTTP, KAFKA, OBJECT_STORE, Target, parse_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("/out", Target(DIRECTORY, "/out", "", "/out")),
        ("out/x", Target(DIRECTORY, "out/x", "", "out/x")),
        ("file:///out", Target(DIRECTORY, "/out", "", "out")),
        ("s3://bucket/a/b/", Target(OBJECT_STORE, "s3://bucket/a/b/", "bucket", "a/b")),
        ("s3a://bucket", Target(OBJECT_STORE, "s3://bucket", "bucket", "")),
        ("gs://b/p", Target(OBJECT_STORE, "gs://b/p", "b", "p")),
        ("az://c/p", Target(OBJECT_STORE, "az://c/p", "c", "p")),
        ("kafka://a:1,b:2/topic", Target(KAFKA, "kafka://a:1,b:2/topic", "a:1,b:2", "topic")),
        (
            "https://example.com:8443/v1/e",
            Target(HTTP, "https://example.com:8443/v1/e", "example.com:8443", "v1/e"),
        ),
    ],
)
def test_targets(text: str, target: Target) -> None:
    """A directory or a URL says kind, place and name."""
    assert parse_target(text) == target


@pytest.mark.parametrize(
    "text", ["x://y", "file://host/p", "s3:///p", "kafka://b/", "kafka://b/a/b", "https:///p"]
)
def test_what_is_no_target(text: str) -> None:
    """Anything else is refused."""
    with pytest.raises(ValueError):
        parse_target(text)
