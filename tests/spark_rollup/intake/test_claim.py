"""Two runs of `ingest` on one bronze directory."""

from __future__ import annotations

import os

import pytest

from spark_rollup.errors import UsageError
from spark_rollup.intake.claim import claimed


def test_the_second_is_told_who_works(tmp_path):
    """While one is at work another ends at once; afterwards it may."""
    bronze = tmp_path / "bronze"
    with (
        claimed(bronze),
        pytest.raises(UsageError, match=rf"another ingest is at work on .*process {os.getpid()} on "),
        claimed(bronze),
    ):
        pass
    with claimed(bronze):
        pass


def test_an_end_in_disorder_frees_it(tmp_path):
    """A run that fails leaves nothing that would keep the next one out."""
    with pytest.raises(RuntimeError), claimed(tmp_path):
        raise RuntimeError
    with claimed(tmp_path):
        pass
