"""The HTTP sink over TLS, with a certificate of a private authority and a rotating token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.delivery import ShipSettings
from agent.errors import RetryableShipError
from agent.ship.sinks.base import make_sink
from tests.delivery.servers import Certificates
from tests.support.collector import Collector, collecting

pytestmark = pytest.mark.delivery


@pytest.fixture
def collector(certificates: Certificates) -> Iterator[Collector]:
    """Give a collector that speaks TLS."""
    with collecting(certificates.certificate, certificates.key) as found:
        yield found


def test_events_and_token_arrive_over_tls(
    collector: Collector, certificates: Certificates, tmp_path: Path
) -> None:
    """The token is read again for each request, as Kubernetes rotates it."""
    token = tmp_path / "token"
    token.write_text("first\n")
    settings = ShipSettings(ca_file=str(certificates.certificate), token_file=str(token))
    sink = make_sink(collector.url, settings, None)
    sink.put("u/b-1-1", b'{"n":1}\n')
    token.write_text("second")
    sink.put("u/b-2-2", b'{"n":2}\n')
    assert [event["n"] for event in collector.events] == [1, 2]
    assert [x["Authorization"] for x in collector.requests] == ["Bearer first", "Bearer second"]
    token.unlink()
    with pytest.raises(RetryableShipError, match="cannot read"):
        sink.put("u/b-3-3", b'{"n":3}\n')


def test_an_unknown_authority_is_refused(collector: Collector) -> None:
    """Without the authority's certificate nothing is sent."""
    sink = make_sink(collector.url, ShipSettings(), None)
    with pytest.raises(RetryableShipError, match="CERTIFICATE_VERIFY_FAILED"):
        sink.put("u/b-1-1", b'{"n":1}\n')
    assert collector.requests == []
