"""Facts that were not given to the agent as such: the application's own file, and its pod's label."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import load_config
from agent.errors import ConfigError
from agent.inventory.settings import Setting


def test_the_own_file_of_an_application_comes_last(tmp_path: Path) -> None:
    """It decides what nothing else gives; also what is given for all applications is over what the file says of one."""
    file = tmp_path / "streams.properties"
    file.write_text(
        "application.id=orders\nprocessing.guarantee=exactly_once_v2\nnum.standby.replicas=1\ncommit.interval.ms=50"
    )
    config = load_config(
        sets=["processing_guarantee=at_least_once", "orders:commit_interval_ms=70"],
        flags={"properties": str(file)},
    )
    orders = config.applications.of("orders").values
    assert orders["processing_guarantee"] == Setting("at_least_once", "flag")
    assert orders["commit_interval_ms"] == Setting("70", "flag")
    assert orders["num_standby_replicas"] == Setting("1", "properties")
    assert "num_standby_replicas" not in config.applications.of("bills").values
    assert config.notes == ()


def test_a_file_without_a_name_is_about_all_applications(tmp_path: Path) -> None:
    """From the environment, as in a sidecar; bytes that are no UTF-8 are those of Java's own encoding."""
    file = tmp_path / "streams.properties"
    file.write_bytes(b"# \xe4\nnum.standby.replicas=1\nprocessing.guarantee=${GUARANTEE}\n")
    config = load_config(environment={"STATEWARDEN_PROPERTIES": str(file)})
    assert config.applications.common == {"num_standby_replicas": Setting("1", "properties")}
    (note,) = config.notes
    assert note.startswith(f"{file}: processing.guarantee=${{GUARANTEE}} is not used: ")


def test_a_file_without_facts_is_noted(tmp_path: Path) -> None:
    """A wrong file is not silent; one that is not there is a mistake."""
    file = tmp_path / "log4j.properties"
    file.write_text("rootLogger=INFO")
    assert load_config(flags={"properties": str(file)}).notes == (
        f"{file}: has no setting that decides a verdict",
    )
    with pytest.raises(ConfigError, match=r"absent: cannot be read: No such file or directory"):
        load_config(flags={"properties": str(tmp_path / "absent")})


def test_another_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """A flag ends the start; a sidecar's file only leaves a note. By its name or by its content."""
    for name, text in (
        ("application.yml", "processing.guarantee: exactly_once_v2\n"),
        (
            "streams.properties",
            "spring:\n  kafka.streams.properties:\n    processing.guarantee: at_least_once\n",
        ),
    ):
        file = tmp_path / name
        file.write_text(text)
        with pytest.raises(ConfigError, match=r"YAML.*--set processing\.guarantee="):
            load_config(flags={"properties": str(file)})
        config = load_config(environment={"STATEWARDEN_PROPERTIES": str(file)})
        assert config.applications.common == {}
        assert "YAML" in config.notes[0]


def test_a_file_whose_facts_are_not_used_has_them(tmp_path: Path) -> None:
    """One sentence says why, and none that the file has no setting."""
    file = tmp_path / "streams.properties"
    file.write_text("processing.guarantee=${GUARANTEE}\n")
    (note,) = load_config(flags={"properties": str(file)}).notes
    assert "placeholder" in note


def test_kafkas_own_names_are_taken(tmp_path: Path) -> None:
    """In flags and in the file, with the prefixes under which Kafka Streams reads them."""
    file = tmp_path / "agent.toml"
    file.write_text('[application]\n"num.standby.replicas" = 1\n')
    sets = [
        "processing.guarantee=exactly_once_v2",
        "orders:commit.interval.ms=70",
        "topic.delete.retention.ms=5",
        "main.consumer.session.timeout.ms=6",
    ]
    book = load_config(file=file, sets=sets).applications
    assert book.common == {
        "processing_guarantee": Setting("exactly_once_v2", "flag"),
        "num_standby_replicas": Setting("1", "file"),
        "delete_retention_ms": Setting("5", "flag"),
        "session_timeout_ms": Setting("6", "flag"),
    }
    assert book.own["orders"] == {"commit_interval_ms": Setting("70", "flag")}


def test_a_file_that_cannot_be_read_does_not_stop_a_sidecar(tmp_path: Path) -> None:
    """The application waits for the agent to be ready: a ConfigMap without the key, or a binary, must not keep it."""
    large = tmp_path / "large"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    for file, why in (
        (tmp_path / "absent", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (large, "it is larger than 1048576 bytes"),
    ):
        config = load_config(environment={"STATEWARDEN_PROPERTIES": str(file)})
        assert config.applications.common == {}
        assert config.notes == (f"{file}: cannot be read: {why}",)


@pytest.mark.parametrize(
    ("label", "sets", "release", "notes"),
    [
        ("3.9.1", [], Setting("3.9.1", "environment"), 0),
        ("3.9.1", ["kafka_streams_version=4.1.2"], Setting("4.1.2", "flag"), 0),
        ("", [], None, 0),
        ("main-4f2e", [], None, 1),
    ],
)
def test_a_label_gives_the_release(label: str, sets: list[str], release: Setting | None, notes: int) -> None:
    """What the pod is labelled with counts where nothing else does; what is no release is noted, not an error."""
    config = load_config(sets=sets, environment={"STATEWARDEN_STREAMS_VERSION": label})
    assert config.applications.common.get("kafka_streams_version") == release
    assert len(config.notes) == notes
