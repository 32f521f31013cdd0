"""Ask Java less: what a name means is asked for once, and no stack is walked for names of jobs that are never shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

from py4j.java_gateway import JavaClass, JavaMember, JVMView
from pyspark.sql import SparkSession

Given = TypeVar("Given")
Made = TypeVar("Made")

ABREAST = 4
"""How many jobs are planned side by side."""

_CALL_SITE = ("callSite.short", "callSite.long")
"""Local properties of a thread; without them Spark walks the stack for each RDD that it makes."""


@cache
def remember_names() -> None:
    """Ask Java once for each class and static method that PySpark names, not once for each column.

    For every such question Java searches all of Spark's jars, or copies all methods of a class. What is a field may
    change, and what is only part of a package may be a class elsewhere: these are asked for again.
    """
    for owner, constant in ((JVMView, JavaClass), (JavaClass, (JavaClass, JavaMember))):
        setattr(owner, "__getattr__", _once(owner.__getattr__, constant))  # noqa: B010 - mypy knows it as a method


def _once(ask: Callable[[Any, str], Any], constant: type | tuple[type, ...]) -> Callable[[Any, str], Any]:
    def answer(asked: Any, name: str) -> Any:
        found = ask(asked, name)
        if isinstance(found, constant):
            vars(asked)[name] = found
        return found

    return answer


def run_parallel(spark: SparkSession, work: Callable[[Given], Made], of: Iterable[Given]) -> list[Made]:
    """Do something with each of several things, side by side.

    The driver plans one job while the cores run another: on small inputs planning takes longer than running.

    Returns:
        What each gave, in order.
    """
    with ThreadPoolExecutor(ABREAST, initializer=partial(name_jobs, spark)) as pool:
        return list(pool.map(work, of))


def name_jobs(spark: SparkSession) -> None:
    """Give the jobs of this thread one name, all of them."""
    for key in _CALL_SITE:
        spark.sparkContext.setLocalProperty(key, "audit")
