"""The object store sink against S3 services of two makes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from agent.delivery import ShipSettings
from agent.errors import ConfigError, PermanentShipError, RetryableShipError
from agent.ship.shipper import Outcome, Shipper
from agent.ship.sinks.base import Sink, make_sink
from deploy.demo.agents import free_port
from tests.agent.ship.ship_support import HandClock, finding, heartbeat, open_spool
from tests.delivery.conftest import objects
from tests.delivery.servers import BUCKET, S3, SECRET, secrets

pytestmark = pytest.mark.delivery
LINES = b'{"a":1}\n{"a":2}\n'


def sink_of(service: S3, prefix: str, **changes: object) -> Sink:
    """Make the sink as an agent would."""
    return make_sink(f"s3://{BUCKET}/{prefix}", ShipSettings(**{**service.ship, **changes}), None)


def test_segments_arrive_under_their_names(s3: S3, tmp_path: Path) -> None:
    """What a spool held is in the bucket, one object per segment, gzip JSON lines."""
    clock = HandClock()
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        spool.append(finding())
        spool.seal()
        spool.append(heartbeat())
        spool.seal()
        shipper = Shipper(spool, sink_of(s3, "arrive"))
        assert [shipper.ship_once(clock.at_s) for _ in range(3)] == [
            Outcome.SHIPPED,
            Outcome.SHIPPED,
            Outcome.IDLE,
        ]
    found = objects(s3, "arrive/")
    assert {path: len(events) for path, events in found.items()} == {
        "arrive/uid-1/boot1-000000000001-000000000002.jsonl.gz": 2,
        "arrive/uid-1/boot1-000000000003-000000000003.jsonl.gz": 1,
    }


def test_a_retry_is_harmless_and_another_content_is_refused(s3: S3) -> None:
    """Create-if-absent: the same lines again are an acknowledgement, others never overwrite."""
    sink = sink_of(s3, "again")
    sink.put("u/b-1-2", LINES)
    sink.put("u/b-1-2", LINES)
    with pytest.raises(PermanentShipError, match="is there already with another content"):
        sink.put("u/b-1-2", LINES + b'{"a":3}\n')
    assert objects(s3, "again/")["again/u/b-1-2.jsonl.gz"] == [{"a": 1}, {"a": 2}]


def test_a_missing_bucket_is_for_an_operator_to_fix(s3: S3) -> None:
    """It is retryable, after a long wait, and told in one line."""
    sink = make_sink("s3://no-such-bucket/x", ShipSettings(**s3.ship), None)
    with pytest.raises(RetryableShipError, match="not found") as caught:
        sink.put("u/b-1-2", LINES)
    assert caught.value.delay_s == 60
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("s3", ["versitygw"], indirect=True)
def test_wrong_credentials_are_fixed_by_a_new_secret(s3: S3, tmp_path: Path) -> None:
    """A refused signature is retryable; when the mounted Secret has changed, the next attempt works."""
    folder = secrets(tmp_path / "secret", access_key_id="x", secret_access_key="wrong")
    sink = sink_of(s3, "fixed", credentials_dir=str(folder))
    with pytest.raises(RetryableShipError) as caught:
        sink.put("u/b-1-2", LINES)
    assert caught.value.delay_s == 60
    for name in ("access_key_id", "secret_access_key"):
        (folder / "..data" / name).write_text((s3.credentials / name).read_text())
    with pytest.raises(RetryableShipError):
        sink.put("u/b-1-2", LINES)
    sink.put("u/b-1-2", LINES)


def test_a_service_that_is_away_is_retryable(s3: S3) -> None:
    """Nobody listens: soon again, and no secret in what is told."""
    sink = sink_of(s3, "away", endpoint=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(RetryableShipError) as caught:
        sink.put("u/b-1-2", LINES)
    assert caught.value.delay_s == 1
    assert SECRET not in str(caught.value)


def test_unknown_options_are_refused_at_the_start(s3: S3, tmp_path: Path) -> None:
    """A file in the Secret that is no option of the provider is named."""
    folder = secrets(tmp_path / "secret", acess_key_id="x")
    with pytest.raises(ConfigError, match="'acess_key_id' is not valid"):
        sink_of(s3, "x", credentials_dir=str(folder))
    with pytest.raises(ConfigError, match="cannot read credentials_dir"):
        sink_of(s3, "x", credentials_dir=str(tmp_path / "none"))


def test_the_providers_own_chain(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder of credentials the provider's environment is used."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", (s3.credentials / "access_key_id").read_text().strip())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", (s3.credentials / "secret_access_key").read_text().strip())
    sink_of(s3, "chain", credentials_dir="").put("u/b-1-2", LINES)
    assert len(objects(s3, "chain/")) == 1


def test_no_secret_in_the_log(s3: S3, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """However a put fails, neither key nor secret is logged."""
    caplog.set_level(logging.DEBUG)
    clock = HandClock()
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        spool.seal()
        shipper = Shipper(spool, make_sink("s3://no-such-bucket/x", ShipSettings(**s3.ship), None))
        assert shipper.ship_once(clock.at_s) is Outcome.RETRYABLE
    assert SECRET not in caplog.text
    assert "no-such-bucket" in "".join(str(vars(record)) for record in caplog.records)
