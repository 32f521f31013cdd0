"""The servers of the delivery tests, each started once; see `make test-services`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.delivery import servers
from tests.delivery.rollups import Rollup
from tests.support.recorded_fleet import replayed

S3_MAKES = ["moto", "versitygw"]


@pytest.fixture(scope="session", params=S3_MAKES)
def s3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.S3]:
    """Give an S3 service of each make."""
    pytest.importorskip("obstore", reason="run: make test-services")
    if request.param == "versitygw" and not servers.versitygw_binary():
        pytest.skip("no versitygw: tools/setup_delivery.sh builds it with Go")
    with getattr(servers, request.param)(tmp_path_factory.mktemp(request.param)) as service:
        yield service


def objects(service: servers.S3, prefix: str) -> dict[str, list[dict[str, Any]]]:
    """Read every object below a prefix: path -> events."""
    import obstore

    store = service.store()
    found = {}
    for meta in obstore.list(store, prefix).collect():
        content = gzip.decompress(bytes(obstore.get(store, meta["path"]).bytes()))
        found[meta["path"]] = [json.loads(line) for line in content.splitlines()]
    return found


def fetched(service: servers.S3, prefix: str, folder: Path) -> Path:
    """Copy every object below a prefix into a directory, as `ingest` reads it."""
    import obstore

    store = service.store()
    for meta in obstore.list(store, prefix).collect():
        path = folder / meta["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(obstore.get(store, meta["path"]).bytes()))
    return folder


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> servers.Certificates:
    """Give a certificate for 127.0.0.1."""
    pytest.importorskip("cryptography", reason="run: make test-services")
    return servers.make_certificates(tmp_path_factory.mktemp("tls"))


SCENARIO = "kafka-8187-stage2-2.0.1"


@pytest.fixture(scope="session")
def segments(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """Give what the agents of a recorded incident ship."""
    folder = tmp_path_factory.mktemp("segments")
    replayed([repository / "tests/data/traces" / SCENARIO], folder)
    return folder


@pytest.fixture(scope="session")
def expected(rollup: Rollup, segments: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """Give bronze and findings as they are from a directory."""
    bronze = tmp_path_factory.mktemp("from-directory") / "bronze"
    rollup.ingest(segments, bronze)
    found = rollup.findings(bronze)
    assert b"resurrected-checkpoint" in found
    return bronze, found
