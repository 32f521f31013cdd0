"""An application's own file: the syntax of java.util.Properties, and which keys are facts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.properties import facts_of
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


# fmt: off
ALL_OF_THEM = (
    "application.id=orders\nprocessing.guarantee : exactly_once_v2\nnum.standby.replicas 1\n"
    "state.cleanup.delay.ms=60000\ncommit.interval.ms=100\nbootstrap.servers=b:9092\nstate.dir=/var/state\ntopic.delete.retention.ms=3600000\n"
)
THREE = "session.timeout.ms=1\nconsumer.session.timeout.ms=2\nmain.consumer.session.timeout.ms=3\n"
COMMIT, GUARANTEE = {"commit_interval_ms": "100"}, "processing.guarantee=exactly_once_v2"
BINDER = "spring.cloud.stream.kafka.streams.binder."
FACTS: dict[str, dict[str, str]] = {
    ALL_OF_THEM: {"processing_guarantee": "exactly_once_v2", "num_standby_replicas": "1",
         "state_cleanup_delay_ms": "60000",
                  "commit_interval_ms": "100", "delete_retention_ms": "3600000"},
    # the release is not in such a file, whatever a line looks like
    "kafka-streams\\ jar=3.9.1\nkafka_streams_version=3.9.1\n-=x\n": {},
    # the main consumer's timeout is over the consumers', that over the clients'; a bare topic setting is none
    THREE: {"session_timeout_ms": "3"}, THREE.rpartition("main")[0]: {"session_timeout_ms": "2"},
    "session.timeout.ms=1": {"session_timeout_ms": "1"},
    # one that holds always says so, whatever a profile repeats
    f"{GUARANTEE}\n%dev.kafka-streams.{GUARANTEE}": {"processing_guarantee": "exactly_once_v2"},
    # it is about other files: this one counts in every profile
    "spring.profiles.active=prod\nnum.standby.replicas=1": {"num_standby_replicas": "1"},
    # a consumer's automatic commits are not the interval of Kafka Streams; a comment says nothing
    "consumer.auto.commit.interval.ms=1\n# processing.guarantee=exactly_once": {},
    # Spring Boot, Quarkus and ksqlDB have documented names of their own before Kafka's
    "quarkus.kafka-streams.topics=a\nkafka-streams.commit.interval.ms=100": COMMIT,
    "spring.kafka.streams.properties.commit.interval.ms=100": COMMIT,
    "spring.kafka.streams.properties.[commit.interval.ms]=100": COMMIT,
    "spring.kafka.streams.properties[commit.interval.ms]: 100": COMMIT,
    f"{BINDER}configuration.commit.interval.ms=100": COMMIT,
    f"{BINDER}functions.a.configuration.commit.interval.ms=100\n{BINDER}configuration.commit.interval.ms=100": COMMIT,
    "spring.kafka.properties.session.timeout.ms=9": {"session_timeout_ms": "9"},
    "SPRING_KAFKA_STREAMS_PROPERTIES_COMMIT_INTERVAL_MS=100": COMMIT, "ksql.streams.commit.interval.ms=100": COMMIT,
    "ksql.streams.topic.delete.retention.ms=9": {"delete_retention_ms": "9"},
    "KSQL_KSQL_STREAMS_COMMIT_INTERVAL_MS=100": COMMIT, "KSQL_COMMIT_INTERVAL_MS=100": COMMIT,
    "commit.interval.ms=100\nksql.streams.commit.interval.ms=100": COMMIT,
}
PLACEHOLDER = "is not used: it has a placeholder, whose value only the application knows"
PROFILE, TWO = "is not used: it holds for one profile or function only", "of two values none is used"
FORM = "is not read as processing.guarantee: if it is that, give --set processing.guarantee=VALUE"
NOTED = {
    **{f"processing.guarantee={x}": PLACEHOLDER
       for x in ("${GUARANTEE}", "${GUARANTEE:exactly_once_v2}", "#{x}", "{{ .Values.g }}", "@guarantee@")},
    "delete.retention.ms=1": "is not read as delete.retention.ms",
    "processing.guarantee=exactly_twice": "is not used: must be one of",
         "num.standby.replicas=many": "is not used: must be a",
    # Java reads it as part of the key, so the application runs with the default: the agent must not know better
    f"\ufeff{GUARANTEE}": "byte order mark", f"\u00ef\u00bb\u00bf{GUARANTEE}": "byte order mark",
    f"{GUARANTEE}\nprocessing.guarantee=at_least_once": TWO,
    f"{GUARANTEE}\nkafka-streams.processing.guarantee=at_least_once": TWO,
    f"kafka-streams.{GUARANTEE}\n%dev.kafka-streams.processing.guarantee=at_least_once": TWO,
    f"{GUARANTEE}\n#---\nspring.config.activate.on-profile=local\nprocessing.guarantee=at_least_once": TWO,
    "processing.guarantee=${G}\nprocessing.guarantee=at_least_once": TWO,
    f"%prod.kafka-streams.{GUARANTEE}": PROFILE, f"%{{dev,test}}.kafka-streams.{GUARANTEE}": PROFILE,
    f"a=b\n#---\nspring.config.activate.on-profile=local\nspring.kafka.streams.properties.{GUARANTEE}": PROFILE,
    f"{BINDER}functions.a.configuration.{GUARANTEE}": PROFILE,
    f"{BINDER}functions.a.configuration.{GUARANTEE}\n{BINDER}configuration.processing.guarantee=at_least_once": TWO,
    f"a=b\n!---\nspring.profiles=local\n{GUARANTEE}": PROFILE,
    f"my.app.streams.{GUARANTEE}": FORM, "KAFKA_STREAMS_PROCESSING_GUARANTEE=exactly_once_v2": FORM,
    "export KSQL_KSQL_STREAMS_PROCESSING_GUARANTEE=exactly_once_v2": FORM,
    "spring: {kafka: {streams: {properties: {processing.guarantee: exactly_once_v2}}}}": FORM,
    'processingGuarantee = "exactly_once_v2"': FORM,
}
# fmt: on


@pytest.mark.parametrize("text", FACTS)
def test_facts(text):
    """Every setting that detectors know, under the names that count; other keys are ignored without a word."""
    found = facts_of(text)
    assert (found.values, found.notes) == (FACTS[text], ())
    assert found.application_id == ("orders" if text == ALL_OF_THEM else None)


@pytest.mark.parametrize("text", NOTED)
def test_what_is_no_fact_is_noted(text):
    """Never said to be missing, and nothing fails: an agent must start beside an application with a wrong file."""
    is_marked = text.startswith(("\ufeff", "\u00ef"))
    found = facts_of(f"{text}\ncommit.interval.ms=100" if is_marked else f"commit.interval.ms=100\n{text}")
    assert found.values == COMMIT
    assert NOTED[text] in found.notes[0]
    assert is_marked or len(found.notes) == 1
    assert NOTED[text] is not TWO or "processing.guarantee=at_least_once" in found.notes[0]


def test_a_placeholder_in_the_name_makes_the_file_that_of_all():
    """Whom it is about is not known then."""
    found = facts_of("application.id=${APP}\nnum.standby.replicas=1")
    assert (found.application_id, found.values) == (None, {"num_standby_replicas": "1"})
    assert "so the file counts for all applications here" in found.notes[0]


@pytest.mark.parametrize(
    "name",
    [
        "spring.kafka.streams.application-id",
        "spring.kafka.streams.applicationId",
        "SPRING_KAFKA_STREAMS_APPLICATIONID",
        "quarkus.kafka-streams.application-id",
        "kafka-streams.application.id",
    ],
)
def test_a_framework_names_the_application(name):
    """Its facts count for that one."""
    assert facts_of(f"{name}=orders").application_id == "orders"


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
