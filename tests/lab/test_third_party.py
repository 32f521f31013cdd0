"""Our own persistent store that is no RocksDB: what is expected of every store that Kafka Streams wipes."""

from __future__ import annotations

import subprocess

import pytest

from tests.lab.toolbox import MissingToolError, reopened_classes, tool

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]  # the first run fetches Kafka's jars


@pytest.mark.parametrize("release", ["2.0.1", "4.3.1"])
def test_an_opened_store_holds_what_is_on_the_disk(release, tmp_path):
    """A wipe closes a store, deletes its directory and opens the same object: nothing of before may be in it."""
    try:
        command = [tool("java"), "-cp", reopened_classes(release), "Reopened", str(tmp_path)]
    except MissingToolError as error:
        pytest.skip(f"missing: {error}")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kept", "1", "wiped", "0"]
