"""An application's own file: the syntax of java.util.Properties, and which keys are facts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.properties import facts_of
from agent.inventory.settings import KEYS
from agent.layout.java_properties import is_nested, rows


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
        ("\ufeffa=1", {"\ufeffa": "1"}),
        ("=b", {"": "b"}),
    ],
)
def test_the_syntax_is_that_of_java(text, expected):
    """Separators, comments, continuation lines and escapes, as java.util.Properties reads them."""
    assert dict(rows(text)) == expected


@given(st.text())
def test_any_text_is_read(text):
    """No file makes the reader fail."""
    facts_of(text)
    is_nested(text)


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))
)
def test_what_was_escaped_comes_back(pairs):
    """Every key and value that is written with escapes is read again."""

    def escaped(text: str) -> str:
        return "".join(f"\\u{ord(x):04x}" if ord(x) < 0x10000 else x for x in text)

    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in pairs.items())
    assert dict(rows(text)) == pairs


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


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "quarkus.kafka-streams.topics=a\nkafka-streams.commit.interval.ms=100",
            {"commit_interval_ms": "100"},
        ),
        ("spring.kafka.streams.properties.commit.interval.ms=100", {"commit_interval_ms": "100"}),
        ("spring.kafka.streams.properties.[commit.interval.ms]=100", {"commit_interval_ms": "100"}),
        ("spring.kafka.streams.properties[commit.interval.ms]: 100", {"commit_interval_ms": "100"}),
        ("spring.kafka.properties.session.timeout.ms=9", {"session_timeout_ms": "9"}),
        ("SPRING_KAFKA_STREAMS_PROPERTIES_COMMIT_INTERVAL_MS=100", {"commit_interval_ms": "100"}),
        ("ksql.streams.commit.interval.ms=100", {"commit_interval_ms": "100"}),
        ("ksql.streams.topic.delete.retention.ms=9", {"delete_retention_ms": "9"}),
        ("KSQL_KSQL_STREAMS_COMMIT_INTERVAL_MS=100", {"commit_interval_ms": "100"}),
        ("KSQL_COMMIT_INTERVAL_MS=100", {"commit_interval_ms": "100"}),
        ("commit.interval.ms=100\nksql.streams.commit.interval.ms=100", {"commit_interval_ms": "100"}),
    ],
)
def test_what_a_framework_hands_on_is_a_fact(text, values):
    """Spring Boot, Quarkus and ksqlDB have documented names of their own before Kafka's."""
    assert facts_of(text).values == values
    assert facts_of(text).notes == ()


def test_every_setting_is_read_under_every_prefix():
    """Reading is by the table of settings: one more there is one more here."""
    for key in KEYS:
        if "." in key.kafka_name:
            for before in ("", "kafka-streams.", "ksql.streams.", "spring.kafka.streams.properties."):
                text = f"{before}{key.kafka_names[0]}=?"
                assert text in str(facts_of(text).notes) or key.name in facts_of(text).values


@pytest.mark.parametrize(
    "text",
    [
        "spring.kafka.streams.application-id=orders",
        "spring.kafka.streams.applicationId=orders",
        "SPRING_KAFKA_STREAMS_APPLICATIONID=orders",
        "quarkus.kafka-streams.application-id=orders",
        "kafka-streams.application.id=orders",
    ],
)
def test_a_framework_names_the_application(text):
    """Its facts count for that one."""
    assert facts_of(text).application_id == "orders"


@pytest.mark.parametrize(
    "text",
    [
        "processing.guarantee=exactly_once_v2\nprocessing.guarantee=at_least_once",
        "processing.guarantee=exactly_once_v2\nkafka-streams.processing.guarantee=at_least_once",
        "kafka-streams.processing.guarantee=exactly_once_v2\n%dev.kafka-streams.processing.guarantee=at_least_once",
        "processing.guarantee=exactly_once_v2\n#---\nspring.config.activate.on-profile=local\n"
        "processing.guarantee=at_least_once",
        "processing.guarantee=${G}\nprocessing.guarantee=at_least_once",
    ],
)
def test_a_setting_with_two_values_is_no_fact(text):
    """Which of them holds only the application knows."""
    found = facts_of(text)
    assert found.values == {}
    (note,) = found.notes
    assert "of two values none is used" in note
    assert "processing.guarantee=at_least_once" in note


@pytest.mark.parametrize(
    "text",
    [
        "%prod.kafka-streams.processing.guarantee=exactly_once_v2",
        "%{dev,test}.kafka-streams.processing.guarantee=exactly_once_v2",
        "a=b\n#---\nspring.config.activate.on-profile=local\nspring.kafka.streams.properties.processing.guarantee="
        "exactly_once_v2",
        "a=b\n!---\nspring.profiles=local\nprocessing.guarantee=exactly_once_v2",
    ],
)
def test_what_holds_for_a_profile_only_is_no_fact(text):
    """Whether that profile is active is not in the file."""
    found = facts_of(text)
    assert found.values == {}
    assert found.notes[0].endswith("is not used: it holds for a profile only")


def test_a_file_that_names_the_active_profile_holds():
    """It is about other files: this one counts in every profile."""
    found = facts_of("spring.profiles.active=prod\nnum.standby.replicas=1")
    assert found.values == {"num_standby_replicas": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "my.app.streams.processing.guarantee=exactly_once_v2",
        "KAFKA_STREAMS_PROCESSING_GUARANTEE=exactly_once_v2",
        "export KSQL_KSQL_STREAMS_PROCESSING_GUARANTEE=exactly_once_v2",
        "spring: {kafka: {streams: {properties: {processing.guarantee: exactly_once_v2}}}}",
        'processingGuarantee = "exactly_once_v2"',
    ],
)
def test_a_setting_in_an_unknown_form_is_named(text):
    """It is never said that the file has none."""
    found = facts_of(text)
    assert found.values == {}
    (note,) = found.notes
    assert note.endswith(
        "is not read as processing.guarantee: if it is that, give --set processing.guarantee=VALUE"
    )


def test_other_settings_with_such_a_name_are_none():
    """A consumer's automatic commits are not the interval of Kafka Streams; a comment says nothing."""
    assert facts_of("consumer.auto.commit.interval.ms=1\n# processing.guarantee=exactly_once").notes == ()


@pytest.mark.parametrize(
    "text",
    [
        "spring:\n  kafka:\n    x: 1\n",
        "# c\r\nspring:   # d\r\n\r\n  # e\r\n  kafka: 1\r\n",
        "env:\n- name: PROCESSING_GUARANTEE\n",
        "env:\n  - name: PROCESSING_GUARANTEE\n",
        "processing.guarantee: exactly_once_v2\n---\nprocessing.guarantee: at_least_once\n",
        '{"processing.guarantee": "exactly_once_v2"}',
        '<?xml version="1.0"?>\n<properties>',
        "kafka-streams {\n  num.standby.replicas = 1\n}\n",
        "[application]\nnum.standby.replicas = 1\n",
    ],
)
def test_other_formats_are_recognised(text):
    """A line of them would be read by luck: where it belongs is in other lines."""
    assert is_nested(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: 2\n",
        "  a=1\n    b=2\n",
        "a:\nb:\n",
        "a:\\\n  b\n",
        "a=\n  b=1\n",
        "# a:\n  b=1\n",
        "#---\na=1",
        "spring.kafka.streams.properties.[commit.interval.ms]=1\n[x]=2\n",
        "a=${B}\nb=${C:{}}\nc={}\n",
        'sasl.jaas.config=x required \\\n  username="a" \\\n  password="{b}";\n',
    ],
)
def test_properties_are_not_taken_for_another_format(text):
    """An application's own file stays readable."""
    assert not is_nested(text)
