"""What `--input` may say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.errors import UsageError
from spark_rollup.sources.address import (
    DirectoryAddress,
    ObjectAddress,
    TopicAddress,
    parse_address,
    refuse_address,
)

TWO = "b1:9092,[::1]:9093"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("segments", DirectoryAddress(Path("segments"))),
        ("/var/spool/in", DirectoryAddress(Path("/var/spool/in"))),
        ("file:///var/spool/in", DirectoryAddress(Path("/var/spool/in"))),
        ("file:///a%20b/100%25%23/%C3%BC", DirectoryAddress(Path("/a b/100%#/ü"))),
        ("file://localhost/in#1?", DirectoryAddress(Path("/in#1?"))),
        ("s3a://events", ObjectAddress("s3a://events")),
        ("s3a://events/fleet/a/", ObjectAddress("s3a://events/fleet/a")),
        ("s3://events/fleet", ObjectAddress("s3a://events/fleet")),
        ("kafka://b1:9092/events", TopicAddress("b1:9092", "events")),
        (f"kafka://{TWO}/a.b-c_d", TopicAddress(TWO, "a.b-c_d")),
    ],
)
def test_every_form_is_read(text, meant):
    """Directories, prefixes (also as agents spell them) and topics."""
    assert parse_address(text) == meant


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gs://bucket/x", "gs:// is not known; give a directory"),
        ("s3a:///x", "names no bucket"),
        ("file://host/in", "names the host host"),
        ("kafka://b1:9092", "names no topic"),
        ("kafka://b1:9092/a/b", "names no topic"),
        ("kafka://b1/events", "brokers are host:port"),
        ("kafka:///events", "brokers are host:port"),
    ],
)
def test_what_is_missing_is_reported(text, message):
    """Each part that is missing or not known is named."""
    with pytest.raises(UsageError, match=message):
        parse_address(text)


@pytest.mark.parametrize("text", ["s3a://key:hunter2@bucket/x", "kafka://me:hunter2@b1:9092/events"])
def test_credentials_are_refused_and_not_repeated(text):
    """An address with credentials would end in shell histories; the message does not show them again."""
    with pytest.raises(UsageError, match="never holds credentials") as caught:
        parse_address(text)
    assert "hunter2" not in str(caught.value)


@given(st.text())
def test_any_text_is_an_address_or_refused(text):
    """Nothing else comes out than an address or the one error."""
    try:
        found = parse_address(text)
    except UsageError:
        return
    assert isinstance(found, DirectoryAddress | ObjectAddress | TopicAddress)


@pytest.mark.parametrize("path", ["s3a://bucket/bronze", "hdfs://host/bronze"])
def test_bronze_is_a_directory(path):
    """A store's address, which pathlib would take for a strange directory, is refused with the way out."""
    with pytest.raises(UsageError, match="--bronze must be a directory"):
        refuse_address("--bronze", Path(path))
    refuse_address("--bronze", Path("/var/lib/bronze"))
