"""One writer at a time on bronze."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from spark_rollup.bronze.place import ObjectPath
from spark_rollup.errors import UsageError
from spark_rollup.intake import claim
from spark_rollup.intake.claim import claimed


def test_the_second_learns_who_works(tmp_path, monkeypatch, capsys):
    """It waits and says for whom; when it gives up it says so again. Afterwards it may."""
    bronze = tmp_path / "bronze"
    monkeypatch.setattr(claim, "PATIENCE_S", 0.02)
    monkeypatch.setattr(claim, "POLL_S", 0.01)
    holder = rf"ingest, process {os.getpid()} on "
    with (
        claimed(bronze),
        pytest.raises(UsageError, match=rf"another run is working on .*{holder}.*wait until it ends"),
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


class Store(ObjectPath):
    """One object with an ETag, as an object store keeps it; `down` is how many requests it does not answer."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.number = self.down = 0
        self.lock = threading.RLock()

    def __truediv__(self, name: str) -> Store:
        return self

    def __str__(self) -> str:
        return "s3a://bucket/_claim"

    def _write(self, text: str) -> bool:  # type: ignore[override]
        with self.lock:
            self.text, self.number = text, self.number + 1
        return True

    def create(self, text: str) -> bool:
        return self.text is None and self._write(text)

    def replace_same(self, text: str, etag: str) -> bool:
        with self.lock:
            return etag == self.etag() and self._write(text)

    def etag(self) -> str | None:
        if self.down:
            self.down -= 1
            raise Py4JError("the store does not answer")
        return None if self.text is None else str(self.number)

    def read_text(self, encoding: str = "utf-8") -> str:
        if self.text is None:
            raise FileNotFoundError
        return self.text

    def unlink(self, missing_ok: bool = False) -> None:
        self.text = None


@pytest.fixture
def store(monkeypatch) -> Store:
    """Give a store whose claim is renewed all the time."""
    for name in ("RENEW_S", "POLL_S"):
        monkeypatch.setattr(claim, name, 0.001)
    return Store()


class Jobs(threading.Event):
    """A session whose jobs can be cancelled."""

    @property
    def session(self) -> Any:
        return SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=self.set))


def taken_over(store: Store) -> str:
    """Let another run take the claim over whose name begins like ours."""
    other = f"ingest, process {os.getpid()} on {os.uname().nodename}0\n"
    store._write(other)
    return other


def gone(store: Store) -> None:
    store.down = 1_000_000


@pytest.mark.parametrize(
    ("happens", "said"),
    [(taken_over, "another run took it over"), (gone, "it cannot be renewed (Py4JError: the store does not")],
)
def test_a_claim_that_is_lost_ends_the_run(store, eventually, capsys, monkeypatch, happens, said):
    """All jobs are cancelled; another run's claim is neither rewritten nor removed."""
    monkeypatch.setattr(claim, "STALE_S", 0.0)
    jobs = Jobs()
    with claimed(store, spark=jobs.session):
        other = happens(store)
        eventually(jobs.is_set)
        store.down = 0
    assert store.text == other
    assert said in capsys.readouterr().err


def test_a_store_that_does_not_answer_for_a_moment_loses_no_claim(store, eventually):
    """The claim goes on being rewritten, and is gone at the end."""
    jobs = Jobs()
    with claimed(store, spark=jobs.session):
        store.down = 3
        eventually(lambda: store.down == 0)
        before = store.number
        eventually(lambda: store.number > before + 2)
    assert not jobs.is_set()
    assert store.text is None


def test_a_claim_that_was_left_behind_is_taken_over(store, monkeypatch):
    """Once it was seen unchanged for long enough."""
    monkeypatch.setattr(claim, "STALE_S", 0.01)
    store._write("compact, process 1 on a-pod-that-is-gone\n")
    with claimed(store):
        assert store.text.startswith("ingest, process")
    assert store.text is None


@pytest.mark.parametrize("stale_s", [0.0, 180.0], ids=["the store refuses it", "it may be alive"])
def test_a_claim_that_cannot_be_taken_over_is_waited_for_and_given_up(store, monkeypatch, stale_s):
    """Without a loop that never ends."""
    monkeypatch.setattr(claim, "STALE_S", stale_s)
    monkeypatch.setattr(claim, "PATIENCE_S", 0.05)
    if not stale_s:
        monkeypatch.setattr(store, "replace_same", lambda text, etag: False)
    store._write("compact, process 1 on a-pod\n")
    with pytest.raises(UsageError, match="compact, process 1 on a-pod"), claimed(store):
        pass
