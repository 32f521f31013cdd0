"""An application's own file: the syntax of java.util.Properties, and which keys are facts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.properties import facts_of, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a \t=  b c ", {"a": "b c "}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("# a=b\n! c=d\n  # e=f\n\n \t\n", {}),
        ("# no continuation \\\na=b", {"a": "b"}),
        ("a=b,\\\n   c,\\\n\td", {"a": "b,c,d"}),
        ("a=b\\\n# c", {"a": "b# c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        (r"a\ b\:c\=d=e", {"a b:c=d": "e"}),
        (r"a=\u00e4\t\q", {"a": "ä\tq"}),
        (r"a=\u12", {"a": "u12"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("\ufeffa=1", {"\ufeffa": "1"}),
        ("=b", {"": "b"}),
    ],
)
def test_the_syntax_is_that_of_java(text, expected):
    """Separators, comments, continuation lines and escapes, as java.util.Properties reads them."""
    assert parse(text) == expected


@given(st.text())
def test_any_text_is_read(text):
    """No file makes the reader fail."""
    facts_of(text)


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))
)
def test_what_was_escaped_comes_back(rows):
    """Every key and value that is written with escapes is read again."""

    def escaped(text: str) -> str:
        return "".join(f"\\u{ord(x):04x}" if ord(x) < 0x10000 else x for x in text)

    assert parse("\n".join(f"{escaped(key)}={escaped(value)}" for key, value in rows.items())) == rows


def test_facts_are_taken_by_their_names():
    """Every setting that detectors know, under the name that Kafka has for it; other keys are ignored."""
    found = facts_of(
        "application.id=orders\nprocessing.guarantee : exactly_once_v2\nnum.standby.replicas 1\n"
        "state.cleanup.delay.ms=60000\ncommit.interval.ms=100\nbootstrap.servers=b:9092\nstate.dir=/var/state\n"
        "topic.delete.retention.ms=3600000\n"
    )
    assert found.application_id == "orders"
    assert found.values == {
        "processing_guarantee": "exactly_once_v2",
        "num_standby_replicas": "1",
        "state_cleanup_delay_ms": "60000",
        "commit_interval_ms": "100",
        "delete_retention_ms": "3600000",
    }
    assert found.notes == ()


def test_what_is_no_setting_of_kafka_is_no_fact():
    """The release is not in such a file, whatever a line looks like."""
    assert facts_of("kafka-streams\\ jar=3.9.1\nkafka_streams_version=3.9.1\n-=x\n").values == {}


def test_the_most_exact_prefix_counts():
    """The main consumer's timeout is over the consumers', that over the clients'; a bare topic setting is none."""
    three = "session.timeout.ms=1\nconsumer.session.timeout.ms=2\nmain.consumer.session.timeout.ms=3\n"
    assert facts_of(three).values == {"session_timeout_ms": "3"}
    assert facts_of(three.rpartition("main")[0]).values == {"session_timeout_ms": "2"}
    assert facts_of("session.timeout.ms=1").values == {"session_timeout_ms": "1"}
    assert facts_of("delete.retention.ms=1").values == {}


@pytest.mark.parametrize(
    "value", ["${GUARANTEE}", "${GUARANTEE:exactly_once_v2}", "#{x}", "{{ .Values.g }}", "@guarantee@"]
)
def test_a_placeholder_decides_nothing(value):
    """What only the application resolves is no fact, and that is noted."""
    found = facts_of(f"processing.guarantee={value}\nnum.standby.replicas=1")
    assert found.values == {"num_standby_replicas": "1"}
    assert found.notes == (
        f"processing.guarantee={value} is not used: it has a placeholder, whose value only the application knows",
    )


def test_a_placeholder_in_the_name_makes_the_file_that_of_all():
    """Whom it is about is not known then."""
    found = facts_of("application.id=${APP}\nnum.standby.replicas=1")
    assert (found.application_id, found.values) == (None, {"num_standby_replicas": "1"})
    assert "so the file counts for all applications here" in found.notes[0]


def test_a_value_that_kafka_refuses_is_no_fact():
    """It is noted, and nothing fails: an agent must start beside an application with a wrong file."""
    found = facts_of("num.standby.replicas=many\nprocessing.guarantee=exactly_twice")
    assert found.values == {}
    assert [note.partition(" is not used: ")[0] for note in found.notes] == [
        "processing.guarantee=exactly_twice",
        "num.standby.replicas=many",
    ]


@pytest.mark.parametrize("mark", ["\ufeff", "\u00ef\u00bb\u00bf"])
def test_a_byte_order_mark_takes_the_first_key_away(mark):
    """Java reads it as part of the key, so the application runs with the default: the agent must not know better."""
    given = facts_of(f"{mark}processing.guarantee=exactly_once_v2\nnum.standby.replicas=1\n")
    assert given.values == {"num_standby_replicas": "1"}
    assert "byte order mark" in given.notes[0]
