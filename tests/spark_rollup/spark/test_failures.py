"""What a failure comes down to, without Spark."""

from __future__ import annotations

import pytest

from spark_rollup.spark.failures import WHY_CHARS, damage, is_deadly, message


class Thrown:
    """Stands for a Java exception."""

    def __init__(self, name: str, message: str, cause: Thrown | None = None) -> None:
        self.name, self.message, self.cause = name, message, cause

    def getClass(self) -> Thrown:
        return self

    def getSimpleName(self) -> str:
        return self.name

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> Thrown | None:
        return self.cause


class JavaError(Exception):
    def __init__(self, thrown: Thrown) -> None:
        super().__init__("357 lines\n\tat a.b.C(D.scala:1)")
        self.java_exception = thrown


def unread(path: str, kind: str = "NO_HINT") -> JavaError:
    why = f"[FAILED_READ_FILE.{kind}] Encountered error while reading file file://{path}.  SQLSTATE: KD001"
    return JavaError(Thrown("SparkException", why, Thrown("RuntimeException", "no magic number")))


def test_the_innermost_cause_is_reported():
    """Of Java's chain, and behind Python's; in one line that is not too long."""
    error = JavaError(Thrown("SparkException", "job aborted", Thrown("IOException", "broken\n\tat x")))
    assert message(error) == "IOException: broken at x"
    outer = RuntimeError("later")
    outer.__cause__ = ValueError("year 10209 is out of range")
    assert message(outer) == "ValueError: year 10209 is out of range"
    assert len(message(ValueError("x" * 9999))) < WHY_CHARS + 10
    assert message(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("cause", "meant"),
    [
        (JavaError(Thrown("IOException", "No space left on device")), "the disk is full (IOException"),
        (JavaError(Thrown("OutOfMemoryError", "Java heap space")), "spark.driver.memory=8g"),
        (ConnectionRefusedError(111, "Connection refused"), "Spark's Java process ended"),
        (RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"), "Java ended before Spark was up"),
        (
            JavaError(Thrown("NoAwsCredentialsException", "Unable to load")),
            "no credentials for the object store",
        ),
    ],
)
def test_what_helps_is_said_where_it_is_known(cause, meant):
    """A full disk, a small heap, a Java that is gone."""
    assert meant in message(cause)


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("/b%20ronze/events/day=2026-11-20/routine=true/x.parquet", "--again`"),
        ("/b%20ronze/quarantine/x.parquet", "forget --bronze /b ronze --file /b ronze/quarantine/x"),
        (
            "/b%20ronze/kept/day=2026-11-20/x.parquet",
            "forget --bronze /b ronze --file /b ronze/kept/day=2026-11-20/x.parquet` takes it out, then "
            "`statewarden-rollup compact --snapshots --bronze /b ronze` makes that day's snapshot again",
        ),
    ],
)
def test_a_damaged_file_of_bronze_is_named_with_what_to_do(path, advice):
    """Each part has its own way out."""
    text = str(damage(unread(path)))
    assert path.replace("%20", " ") in text
    assert "no magic number" in text
    assert advice in text
    assert "\n" not in text


def test_only_a_lost_java_makes_what_it_read_suspect():
    """Neither a full disk nor a defect of ours says anything about files."""
    assert is_deadly(JavaError(Thrown("SparkException", "x", Thrown("OutOfMemoryError", "Java heap space"))))
    assert is_deadly(ConnectionRefusedError(111, "Connection refused"))
    gone = "Job 0 cancelled because SparkContext was shut down"
    assert is_deadly(JavaError(Thrown("SparkException", gone)))
    assert "spark.driver.memory=8g" in message(JavaError(Thrown("SparkException", gone)))
    assert not is_deadly(JavaError(Thrown("IOException", "No space left on device")))
    assert not is_deadly(ValueError("x"))
    assert not is_deadly(KeyboardInterrupt())


def test_other_failures_are_no_damage():
    """Nor are files elsewhere."""
    assert damage(ValueError("x")) is None
    assert damage(unread("/in/boot-1-9.jsonl.gz")) is None
