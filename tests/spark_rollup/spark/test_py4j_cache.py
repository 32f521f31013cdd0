"""What a name means is asked of Java once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from py4j.java_gateway import JavaClass

from spark_rollup.spark.py4j_cache import _once


class Asked:
    """Stands for Java's view: each name that it does not know by itself is a question."""

    def __init__(self) -> None:
        """Begin without questions."""
        self.questions: list[str] = []


def test_a_class_is_asked_for_once_and_all_else_each_time():
    """What is only part of a package, or a field, may mean something else the next time."""

    client = SimpleNamespace(converters=(), gateway_property=SimpleNamespace(pool=None))

    def ask(asked, name):
        asked.questions.append(name)
        return JavaClass(name, client) if name == "functions" else f"package {name}"

    setattr(Asked, "__getattr__", _once(ask, JavaClass))  # noqa: B010 - mypy knows no such method
    java: Any = Asked()
    assert java.functions is java.functions
    assert (java.org, java.org) == ("package org", "package org")
    assert java.questions == ["functions", "org", "org"]
