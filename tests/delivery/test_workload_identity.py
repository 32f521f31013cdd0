"""The rollup with no credentials but what a cloud gives a pod: in processes of their own, as a pod starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delivery import rollups, servers
from tests.delivery.servers import BUCKET, S3
from tests.support.answering import Answer, Request, answering

pytestmark = [pytest.mark.delivery, pytest.mark.timeout(300)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[S3]:
    """Give moto, which also answers for STS, with one segment."""
    obstore = pytest.importorskip("obstore", reason="run: make test-services")
    if not rollups.JARS.is_dir():
        pytest.skip("Spark's jars are fetched by tools/setup_delivery.sh: make test-services")
    with servers.moto(tmp_path) as service:
        obstore.put(service.store(), "statewarden/events/x.jsonl", b"no event\n")
        yield service


def ingest(
    store: S3, work: Path, bronze: str | Path = f"s3a://{BUCKET}/statewarden/bronze", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Take in from the bucket, usually into the bucket, with no other credentials than these."""
    given = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")} | environment
    command = [
        "ingest",
        f"--input=s3a://{BUCKET}/statewarden/events",
        f"--bronze={bronze}",
        f"--endpoint={store.endpoint}",
    ]
    return subprocess.run(
        [sys.executable, "-m", "spark_rollup", *command], capture_output=True, text=True, check=False, timeout=240,
        env={
            **given,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": "us-east-1",
            "PYTHONPATH": str(servers.ROOT),
            "XDG_CACHE_HOME": str(rollups.cache(work)),
        },
    )  # fmt: skip


def test_token_of_a_service_account_is_traded_for_a_role(store: S3, tmp_path: Path) -> None:
    """IAM roles for service accounts: the variables that the cluster's webhook sets."""
    token = tmp_path / "token"
    token.write_text("a.b.c")
    done = ingest(
        store, tmp_path, AWS_ROLE_ARN="arn:aws:iam::123456789012:role/statewarden",
        AWS_WEB_IDENTITY_TOKEN_FILE=str(token), AWS_ENDPOINT_URL_STS=store.endpoint,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 new quarantined lines from 1 new files" in done.stdout


def test_agent_of_the_node_gives_a_role(store: S3, tmp_path: Path) -> None:
    """EKS Pod Identity: an address that answers who shows the pod's token."""
    token = tmp_path / "token"
    token.write_text("of-the-pod")
    asked: list[str | None] = []

    def node(request: Request) -> Answer:
        asked.append(request.headers["Authorization"])
        keys = {"AccessKeyId": servers.KEY, "SecretAccessKey": servers.SECRET, "Token": "t"}
        return 200, {}, json.dumps({**keys, "Expiration": "2099-01-01T00:00:00Z"}).encode()

    with answering(node) as address:
        done = ingest(
            store, tmp_path, tmp_path / "bronze", AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{address}/v1/credentials",
            AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(asked) == {"of-the-pod"}


def test_no_credentials_are_one_line_that_says_where_they_come_from(store: S3, tmp_path: Path) -> None:
    done = ingest(store, tmp_path)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "no credentials for the object store" in done.stderr
