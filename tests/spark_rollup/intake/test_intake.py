"""What `ingest` makes of its arguments, without Spark."""

from __future__ import annotations

import pytest

from spark_rollup.bronze.later import announce
from spark_rollup.cli import main
from spark_rollup.errors import UsageError
from spark_rollup.intake.ingest import Ingested, total
from spark_rollup.intake.intake import IntakeOptions, describe, read_properties
from spark_rollup.intake.opening import Opening, identity_settings, store_settings
from spark_rollup.sources.address import parse_address
from spark_rollup.spark import needs, session


def options(text: str) -> IntakeOptions:
    return IntakeOptions(parse_address(text), Opening("bronze"))


def test_an_endpoint_brings_what_it_needs():
    """Another make of store is asked by path and with a region, which most of them ignore."""
    assert store_settings(Opening("s3a://b", endpoint="http://127.0.0.1:9000"), {}) == {
        "fs.s3a.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": "us-east-1",
    }


def test_without_an_endpoint_only_the_region_is_said():
    """AWS itself needs nothing but, where it is known, the region."""
    assert store_settings(Opening("s3a://b"), {"AWS_REGION": "eu-west-1"}) == {
        "fs.s3a.endpoint.region": "eu-west-1"
    }
    assert store_settings(Opening("s3a://b"), {}) == {}


def test_a_service_account_is_asked_after_keys_and_before_the_machine():
    """Keys that somebody set are meant; the machine's role belongs to every pod on it."""
    assert identity_settings({"AWS_ACCESS_KEY_ID": "k"}) == {}
    (chain,) = identity_settings({"AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token"}).values()
    names = [name.rpartition(".")[2].removesuffix("CredentialsProvider") for name in chain.split(",")]
    assert names == [
        "TemporaryAWS",
        "SimpleAWS",
        "EnvironmentVariable",
        "WebIdentityTokenFile",
        "IAMInstance",
    ]


def test_properties_are_read_as_kafka_s_tools_do(tmp_path):
    """Comments and blank lines are skipped; values may hold an equals sign."""
    path = tmp_path / "client.properties"
    path.write_text('# secret\n\nsecurity.protocol = SASL_SSL\nsasl.jaas.config=a b="c";\n')
    assert read_properties(path) == {"security.protocol": "SASL_SSL", "sasl.jaas.config": 'a b="c";'}


def test_a_bad_property_is_named_by_its_line(tmp_path):
    """The value may be a secret and is not shown."""
    path = tmp_path / "client.properties"
    path.write_text("a=1\nhunter2\n")
    with pytest.raises(UsageError, match="line 2 is not key=value") as caught:
        read_properties(path)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UsageError, match="cannot be read"):
        read_properties(tmp_path / "absent")


def test_turns_are_added_up():
    """A stream's summary is that of one run."""
    both = total([Ingested(3, 1, 2), Ingested(4, 0, 1)])
    assert both == Ingested(7, 1, 3)
    assert describe(both, options("in")) == "7 new events, 1 new quarantined lines from 3 new files in bronze"
    assert "from 3 partitions" in describe(both, options("kafka://b:9092/t"))


def test_events_of_a_newer_contract_are_reported(capsys):
    """Kept, but not looked at: silence would be an all-clear."""
    announce(Ingested(1, 0, 1).newer, "kept")
    assert capsys.readouterr().err == ""
    announce(total([Ingested(1, 0, 1, newer=7), Ingested(1, 0, 1)]).newer, "kept")
    assert "some events are of contract 1.7, and this version knows 1." in capsys.readouterr().err


@pytest.fixture
def no_jars(monkeypatch):
    """Let no session run, and Delta's jars be there."""
    monkeypatch.setattr(needs, "_is_running", lambda: False)
    monkeypatch.setattr(needs, "_fetch", lambda _: None)
    monkeypatch.setattr(needs, "_spark_has", lambda kind: kind == needs.DELTA)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "gs://b"], "gs:// is not known"),
        (["--input", "s3a://b", "--bronze", "kafka://c:1/bronze"], "--bronze must be a directory or s3a://"),
        (["--input", "s3a://b", "--trigger", "often"], "neither availableNow nor"),
        (["--input", "s3a://b", "--trigger", "processing 0 seconds"], "neither availableNow nor"),
        (["--input", "s3a://b", "--spark-conf", "secret"], "is not spark.KEY=VALUE"),
        (["--input", "s3a://b", "--jars", "absent"], "`statewarden-rollup jars s3a` fetches them"),
        (["--input", "kafka://b:1/t", "--jars", "absent"], "`statewarden-rollup jars kafka` fetches them"),
        (["--input", "kafka://b:1/t", "--kafka-config", "absent"], "--kafka-config absent cannot be read"),
        (["--input", "absent"], "absent does not exist"),
        (["--input", ".", "--trigger", "availableNow", "--again"], "without --trigger"),
        (["--input", "."], "holds no *.jsonl"),
    ],
)
def test_wrong_use_ends_before_spark_starts(tmp_path, monkeypatch, capsys, no_jars, arguments, message):
    """Each is one line on stderr and exit code 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "build_session", lambda *_, **__: pytest.fail("Spark was started"))
    given = arguments if "--bronze" in arguments else [*arguments, "--bronze", "bronze"]
    monkeypatch.setattr(session, "is_submitted", lambda: False)
    assert main(["ingest", *given]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_topics_are_not_audited_and_reports_are_directories(capsys):
    """Bronze may be in an object store, what an audit writes may not."""
    assert main(["audit", "--input", "kafka://b:1/p", "--output", "out"]) == 2
    assert "--input must be a directory or s3a://" in capsys.readouterr().err
    assert main(["audit", "--input", "s3a://b/p", "--output", "s3a://b/out"]) == 2
    assert "--output must be a directory" in capsys.readouterr().err
