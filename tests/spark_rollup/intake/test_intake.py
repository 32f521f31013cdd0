"""What `ingest` makes of its arguments; and `--trigger`, which runs it again and again."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from spark_rollup.bronze.later import announce
from spark_rollup.cli import main
from spark_rollup.errors import UsageError
from spark_rollup.intake import ingest, intake
from spark_rollup.intake.ingest import Ingested, total
from spark_rollup.intake.intake import IntakeOptions, describe, parse_trigger, read_properties, stop_asked
from spark_rollup.intake.opening import Opening, identity_settings, store_settings
from spark_rollup.sources.address import parse_address
from spark_rollup.spark import needs, session
from tests.conftest import wait_until
from tests.spark_rollup.intake.conftest import fleet


def options(text: str) -> IntakeOptions:
    return IntakeOptions(parse_address(text), Opening("bronze"))


def test_an_endpoint_brings_what_it_needs():
    """Another make of store is asked by path and with a region, which most ignore; AWS needs at most the region."""
    assert store_settings(Opening("s3a://b", endpoint="http://127.0.0.1:9000"), {}) == {
        "fs.s3a.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": "us-east-1",
    }
    region = {"AWS_REGION": "eu-west-1"}
    assert store_settings(Opening("s3a://b"), region) == {"fs.s3a.endpoint.region": "eu-west-1"}
    assert store_settings(Opening("s3a://b"), {}) == {}


def test_a_service_account_is_asked_after_keys_and_before_the_machine():
    """Keys that somebody set are meant; the machine's role belongs to every pod on it."""
    assert identity_settings({"AWS_ACCESS_KEY_ID": "k"}) == {}
    (chain,) = identity_settings({"AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token"}).values()
    names = [name.rpartition(".")[2].removesuffix("CredentialsProvider") for name in chain.split(",")]
    order = ["TemporaryAWS", "SimpleAWS", "EnvironmentVariable", "WebIdentityTokenFile", "IAMInstance"]
    assert names == order


def test_properties_are_read_as_kafka_s_tools_do(tmp_path):
    """Comments and blank lines are skipped; a bad line is named by its number, for its value may be a secret."""
    path = tmp_path / "client.properties"
    path.write_text('# secret\n\nsecurity.protocol = SASL_SSL\nsasl.jaas.config=a b="c";\n')
    assert read_properties(path) == {"security.protocol": "SASL_SSL", "sasl.jaas.config": 'a b="c";'}
    path.write_text("a=1\nhunter2\n")
    with pytest.raises(UsageError, match="line 2 is not key=value") as caught:
        read_properties(path)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UsageError, match="cannot be read"):
        read_properties(tmp_path / "absent")


def test_turns_are_added_up(capsys):
    """What a newer contract brought is kept and not looked at: silence would be an all-clear."""
    both = total([Ingested(3, 1, 2), Ingested(4, 0, 1)])
    assert both == Ingested(7, 1, 3)
    assert describe(both, options("in")) == "7 new events, 1 new quarantined lines from 3 new files in bronze"
    assert "from 3 partitions" in describe(both, options("kafka://b:9092/t"))
    announce(both.newer, "kept")
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
        ("--input gs://b", "gs:// is not known"),
        ("--input s3a://b --bronze kafka://c:1/bronze", "--bronze must be a directory or s3a://"),
        ("--input s3a://b --trigger often", "neither availableNow nor"),
        ("--input s3a://b --spark-conf secret", "is not spark.KEY=VALUE"),
        ("--input s3a://b --jars absent", "`statewarden-rollup jars s3a` fetches them"),
        ("--input kafka://b:1/t --jars absent", "`statewarden-rollup jars kafka` fetches them"),
        ("--input kafka://b:1/t --kafka-config absent", "--kafka-config absent cannot be read"),
        ("--input absent", "absent does not exist"),
        ("--input .", "holds no *.jsonl"),
    ],
)
def test_wrong_use_ends_before_spark_starts(tmp_path, monkeypatch, capsys, no_jars, arguments, message):
    """Each is one line on stderr and exit code 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "build_session", lambda *_, **__: pytest.fail("Spark was started"))
    given = arguments.split() if "--bronze" in arguments else [*arguments.split(), "--bronze", "bronze"]
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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("availableNow", None),
        ("processing 60 seconds", 60),
        ("processing 1 minute", 60),
        ("processing 2 hours", 7200),
    ],
)
def test_triggers(text, seconds):
    """Once, or again and again."""
    assert parse_trigger(text) == seconds


@pytest.mark.parametrize("text", ["", "once", "60 seconds", "processing 0 seconds", "processing soon"])
def test_other_triggers_are_refused(text):
    """The message shows both ways."""
    with pytest.raises(UsageError, match=r"neither availableNow nor like 'processing 60 seconds'"):
        parse_trigger(text)


def asked_to_stop(error: Exception | None = None) -> list[str]:
    """Run again and again, the first time well, the second time into SIGTERM; gives what happened."""
    done: list[str] = []

    def once(*given: Any) -> None:
        done.append(f"again {given[4]}")
        if len(done) > 1:
            os.kill(os.getpid(), signal.SIGTERM)
            if error:
                raise error

    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=cancelled.set))
    with pytest.MonkeyPatch.context() as patch, stop_asked(spark) as asked:
        patch.setattr(intake, "_once", once)
        given: Any = SimpleNamespace(again="in/a")
        intake._again_and_again(spark, given, given, given, 0, asked)
    return done


cancelled = threading.Event()


@pytest.mark.parametrize("error", [None, RuntimeError("Job 3 cancelled")])
def test_sigterm_ends_it_well(error):
    """The jobs of its last run are cancelled; `--again` was meant once; then signals mean what they meant before."""
    before = signal.getsignal(signal.SIGTERM)
    cancelled.clear()
    assert asked_to_stop(error) == ["again in/a", "again None"]
    assert cancelled.wait(120)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("delta")
def test_again_and_again(spark, tmp_path, capsys):
    """What comes is taken until it is stopped; an empty directory is waited for, and of nothing new nothing is said."""
    source, bronze = tmp_path / "in", tmp_path / "bronze"
    source.mkdir()

    def has_taken(number: int) -> bool:
        return len(ingest.read_ends(bronze)) >= number

    def feed() -> None:
        for number, name in enumerate(("one", "two")):
            fleet(name, number).write(source)
            wait_until(partial(has_taken, number + 1), 300)
        os.kill(os.getpid(), signal.SIGTERM)

    feeder = threading.Thread(target=feed)
    feeder.start()
    words = ["ingest", "--input", str(source), "--bronze", str(bronze)]
    assert main([*words, "--trigger", "processing 1 second"]) == 0
    feeder.join()
    said = f"{len(fleet('one', 0).lines())} new events, 0 new quarantined lines from 1 new files in {bronze}"
    assert capsys.readouterr().out.splitlines() == [said, said]
    assert ingest.run(spark, source, bronze) == Ingested(0, 0, 0)
