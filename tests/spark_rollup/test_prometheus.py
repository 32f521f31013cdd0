"""Metrics of an audit: text, file and push."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from prometheus_client.parser import text_string_to_metric_families

from spark_rollup import prometheus
from spark_rollup.errors import UsageError

FINDING = {
    "detector": "missing-standby",
    "severity": "critical",
    "confidence": "confirmed",
    "status": "open",
    "namespace": "shop",
    "application_id": 'or"ders\\\n',
}
COVERED = {"namespace": "shop", "pod": "pod-a", "watched_ratio": 0.5}


def test_a_parser_reads_the_text_back():
    """Counts per rule and state, escaped labels, watched shares and the watermark."""
    unseen = {**COVERED, "pod": "pod-b", "watched_ratio": None}
    text = prometheus.render([FINDING, FINDING], [COVERED, unseen], 3, 1_795_000_000_500_000)
    found = {
        (sample.name, sample.labels.get("application") or sample.labels.get("pod")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found == {
        ("statewarden_fleet_findings", 'or"ders\\\n'): 2,
        ("statewarden_fleet_watched_ratio", "pod-a"): 0.5,
        ("statewarden_fleet_quarantined", None): 3,
        ("statewarden_fleet_watermark_seconds", None): 1_795_000_000.5,
    }


def test_the_file_appears_whole(tmp_path):
    """A collector never reads half a file, and no other file stays."""
    prometheus.write_textfile("x 1\n", tmp_path / "audit.prom")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("audit.prom", "x 1\n")]
    with pytest.raises(UsageError, match="cannot be written"):
        prometheus.write_textfile("x 1\n", tmp_path / "absent" / "audit.prom")


def test_a_gateway_gets_a_put(tmp_path):
    """The job's group is replaced; a refusal and an address without scheme are told."""
    got: list[tuple[str, str, bytes]] = []

    class Gateway(BaseHTTPRequestHandler):
        def do_PUT(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, self.headers["Content-Type"], body))
            self.send_response(200 if "ok" in body.decode() else 400)
            self.end_headers()

        def log_message(self, *_):
            """Keep quiet."""

    server = HTTPServer(("127.0.0.1", 0), Gateway)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/"
        prometheus.push("ok 1\n", address)
        with pytest.raises(UsageError, match="Bad Request"):
            prometheus.push("bad 1\n", address)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert got[0] == ("/metrics/job/statewarden_rollup", "text/plain; version=0.0.4", b"ok 1\n")
    with pytest.raises(UsageError, match="must begin with http"):
        prometheus.push("ok 1\n", "gateway:9091")
