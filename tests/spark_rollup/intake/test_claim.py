"""One writer at a time on bronze."""

from __future__ import annotations

import os

import pytest

from spark_rollup.errors import UsageError
from spark_rollup.intake import claim
from spark_rollup.intake.claim import claimed


def test_the_second_is_told_who_works(tmp_path, monkeypatch, capsys):
    """It waits and says for whom; when it gives up it says so again. Afterwards it may."""
    bronze = tmp_path / "bronze"
    monkeypatch.setattr(claim, "PATIENCE_S", 0.02)
    monkeypatch.setattr(claim, "POLL_S", 0.01)
    holder = rf"ingest, process {os.getpid()} on "
    with (
        claimed(bronze),
        pytest.raises(UsageError, match=rf"another run is at work on .*{holder}.*wait for its end"),
        claimed(bronze, "compact"),
    ):
        pass
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"waiting for another run on {bronze} (ingest, process {os.getpid()}" in err
    with claimed(bronze, "compact"):
        pass


def test_an_end_in_disorder_frees_it(tmp_path):
    """A run that fails leaves nothing that would keep the next one out."""
    with pytest.raises(RuntimeError), claimed(tmp_path):
        raise RuntimeError
    with claimed(tmp_path):
        pass
