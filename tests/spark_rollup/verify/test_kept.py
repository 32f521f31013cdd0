"""When what a changelog said may be used again; no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.buckets import StoreKind
from spark_rollup.errors import UsageError
from spark_rollup.sources.changelogs import Ends
from spark_rollup.verify import kept
from spark_rollup.verify.plan import Judged
from tests.spark_rollup.support.digest_files import COPY, PLACE

ONE = Judged(COPY, Ends(0, 100, 100), None, None, False, "id-1")


def of_copy(**fields: object) -> Judged:
    """Change the copy."""
    return replace(ONE, source=replace(COPY, **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [
        of_copy(copy=2, pod="pod-1", made_us=1),  # another copy at the same offset
        replace(ONE, ends=Ends(0, 120, 130)),  # the changelog went on
        replace(ONE, may_have_gone=True),  # decided again each time
    ],
)
def test_the_same_is_asked(other):
    assert kept.question(other) == kept.question(ONE) is not None


@pytest.mark.parametrize(
    "other",
    [
        replace(ONE, topic_id="id-2"),  # recreated
        replace(ONE, ends=Ends(1, 100, 100)),  # its beginning was cut off
        of_copy(offset=98, databases=(replace(PLACE, offset=98),)),
        of_copy(databases=(PLACE, replace(PLACE, segment_ms=60_000))),
        of_copy(buckets=16),
        of_copy(partition=1),
        replace(ONE, retention_ms=600_000, source=replace(COPY, kind=StoreKind.WINDOW)),
    ],
)
def test_something_else_is_asked(other):
    assert kept.question(other) not in (None, kept.question(ONE))


@pytest.mark.parametrize(
    "one",
    [
        replace(ONE, topic_id=None),  # the brokers name no topic: it may be another one next time
        of_copy(databases=(replace(PLACE, is_exact=False),)),  # what comes later counts
        of_copy(offset=None),
        of_copy(kind=StoreKind.VERSIONED),
    ],
)
def test_what_may_change_is_read_each_time(one):
    assert kept.question(one) is None


def test_a_directory_of_others_is_refused(tmp_path):
    (tmp_path / "precious.txt").touch()
    with pytest.raises(UsageError, match=r"precious\.txt"):
        kept.load(tmp_path)


def test_what_another_version_kept_is_not_used(tmp_path):
    (tmp_path / kept.NOTE).write_text('{"format": [0, 1], "table": "buckets-1", "questions": ["x"]}')
    assert kept.load(tmp_path) == kept.Kept(tmp_path)
