"""`explain` with what the application's log says: an exception, a line, or a part of one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.page_text import exceptions_of, section_about, sections_of


def heading(page: str, asked: str) -> str | None:
    found = section_about(sections_of(page), asked)
    return None if found is None else found.partition("\n")[0].removeprefix("# ")


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "log-lines.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("TaskCorruptedException", "TaskCorruptedException"),
        ("taskcorruptedexception", "TaskCorruptedException"),
        ("org.apache.kafka.streams.errors.LockException", "LockException"),
        ("org.apache.kafka.common.errors.ProducerFencedException", "TaskMigratedException"),
        ("StateStoreMigratedException", "InvalidStateStoreException"),
        (
            "WARN stream-thread [a-1] Detected the states of tasks {0_1=[x]} are corrupted. Will close the task as"
            " dirty and re-create and bootstrap from scratch. (StreamThread:724)",
            "TaskCorruptedException",
        ),
        (
            "org.apache.kafka.streams.errors.LockException: stream-thread [a-1] standby-task [0_3] Failed to lock the"
            " state directory for task 0_3",
            "LockException",
        ),
        ("org.apache.kafka.streams.errors.ProcessorStateException: Error opening store counts at location /s/a/0_0",
         "ProcessorStateException"),
        ("Caused by: org.apache.kafka.streams.errors.TaskMigratedException: x", "TaskMigratedException"),
        ("org.rocksdb.RocksDBException", "ProcessorStateException"),
        ("Caused by: org.rocksdb.RocksDBException: lock hold by current process", "ProcessorStateException"),
        ("While lock file: /s/0_0/rocksdb/c/LOCK: Resource temporarily unavailable", "ProcessorStateException"),
        ("Can't access /000031.sst: IO error: No such file", "ProcessorStateException"),
        ("Read offset=-1 from checkpoint file for orders-s-changelog-0",
         "Malformed line in offset checkpoint file"),
        ("being fenced. This implies", "TaskMigratedException"),
        (
            "Unable to initialize state, this can happen if multiple instances of Kafka Streams are running in the same"
            " state directory (current state directory is [/s]",
            "Unable to initialize state",
        ),
    ],
)  # fmt: skip
def test_what_a_log_says_is_found(page: str, asked: str, found: str) -> None:
    """By name, by a whole line with what differs in it, or by a part of it."""
    assert heading(page, asked) == found


@pytest.mark.parametrize(
    "asked", ["corrupted", "orders/0_3", "torn", "NullPointerException", "Exception", "", "a.b"]
)
def test_what_is_in_no_section_is_not_found(page: str, asked: str) -> None:
    """Few letters, and what is about something else, lead nowhere."""
    assert heading(page, asked) is None


def test_every_message_leads_to_its_section(page: str) -> None:
    """No message stands in two sections, or leads to another one."""
    for section in page.split("\n## ")[1:]:
        name = section.partition("\n")[0]
        samples = re.findall(r"^- `(.+)`$", section, re.MULTILINE)
        assert samples, name
        for sample in samples:
            assert heading(page, f"ERROR {sample.replace('...', '[x]')} (Main:7)") == name


def test_explain_prints_it(statewarden: Callable, page: str) -> None:
    """Its links are commands; a name that is nearly right leads there."""
    for name in exceptions_of(sections_of(page)):
        said = statewarden("explain", name)
        assert (said.code, said.err) == (0, "")
        assert said.out.startswith(f"# {name}\n")
    assert "did you mean LockException" in statewarden("explain", "LokException").complaint
