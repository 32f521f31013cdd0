"""One key against its records: each course of events has its word, and nothing healthy a bad one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.changelog import Logged
from agent.verify.kinds import Content
from agent.verify.rule import DAMAGE, KnownKeys, Word, judge, sum_up

WHOLE = KnownKeys(10, 0, has_gaps=False, has_gaps_after=False, is_fresh=False)
GAPS = KnownKeys(10, 0, has_gaps=True, has_gaps_after=True, is_fresh=False)
MARKERS = KnownKeys(10, 0, has_gaps=True, has_gaps_after=False, is_fresh=False)
FRESH = KnownKeys(10, 0, has_gaps=True, has_gaps_after=True, is_fresh=True)
CUT = KnownKeys(10, 5, has_gaps=False, has_gaps_after=False, is_fresh=True)
SILENT = KnownKeys(None, 0, has_gaps=False, has_gaps_after=False, is_fresh=False)
SILENT_GAPS = KnownKeys(None, 0, has_gaps=True, has_gaps_after=True, is_fresh=False)


def content(value: str | None) -> Content | None:
    """Give a content of this value."""
    return None if value is None else Content(1, b"", value.encode())


def logged(*records: tuple[int, str | None] | tuple[int, str | None, bool]) -> list[Logged[Content]]:
    """Give records as (offset, value[, is_committed])."""
    return [Logged(x[0], content(x[1]), *x[2:]) for x in records]


@pytest.mark.parametrize(
    ("have", "records", "known", "word"),
    [
        # what is claimed is there
        ("a", [(3, "a")], WHOLE, Word.EQUAL),
        ("a", [(3, "a"), (10, "a")], WHOLE, Word.EQUAL),
        (None, [(3, None)], WHOLE, Word.EQUAL),
        # later records: not there yet, or taken along by a flush
        ("a", [(3, "a"), (12, "b")], WHOLE, Word.BEHIND),
        ("b", [(3, "a"), (12, "b")], WHOLE, Word.EQUAL),
        ("b", [(3, "a"), (12, "b"), (13, "c")], WHOLE, Word.BEHIND),
        ("a", [(3, "a"), (12, None)], WHOLE, Word.BEHIND),
        (None, [(12, "b")], WHOLE, Word.PENDING),
        (None, [(3, "a"), (12, None), (13, "c")], WHOLE, Word.PENDING),
        (None, [(3, "a")], SILENT, Word.PENDING),
        ("a", [(3, "a"), (4, "b")], SILENT, Word.BEHIND),
        # transactions
        ("b", [(3, "a"), (12, "b", False)], WHOLE, Word.AHEAD),
        ("b", [(12, "b", False)], SILENT, Word.AHEAD),
        ("a", [(3, "a"), (12, "b", False)], WHOLE, Word.EQUAL),
        ("b", [(3, "a"), (4, "b", False)], WHOLE, Word.DIFFERENT),
        ("b", [(4, "b", False)], WHOLE, Word.EXTRA),
        # damage
        (None, [(3, "a")], WHOLE, Word.MISSING),
        (None, [(3, "a"), (12, "b")], GAPS, Word.MISSING),
        (None, [(10, "a")], CUT, Word.MISSING),
        ("x", [(3, "a")], WHOLE, Word.DIFFERENT),
        ("x", [(3, "a")], GAPS, Word.DIFFERENT),
        ("x", [(3, "a"), (12, "b")], WHOLE, Word.DIFFERENT),
        ("x", [], WHOLE, Word.EXTRA),
        ("x", [], MARKERS, Word.EXTRA),
        ("x", [], FRESH, Word.EXTRA),
        ("x", [(3, None)], GAPS, Word.EXTRA),
        ("x", [(3, "a")], SILENT, Word.DIFFERENT),
        ("x", [], SILENT, Word.EXTRA),
        # the record that the value is of may be compacted or deleted
        ("x", [], GAPS, Word.UNDECIDABLE),
        ("x", [], CUT, Word.UNDECIDABLE),
        ("x", [(3, "a"), (12, "b")], GAPS, Word.UNDECIDABLE),
        ("x", [(12, "b")], GAPS, Word.UNDECIDABLE),
        ("x", [(3, "a")], SILENT_GAPS, Word.UNDECIDABLE),
        ("x", [], SILENT_GAPS, Word.UNDECIDABLE),
        (
            "x",
            [(30, "a")],
            KnownKeys(10, 20, has_gaps=False, has_gaps_after=False, is_fresh=True),
            Word.UNDECIDABLE,
        ),
    ],
)
def test_a_key_has_its_word(have: str | None, records: list, known: KnownKeys, word: Word) -> None:
    """By what the store holds, the records, and what is known."""
    assert judge(content(have), logged(*records), known)[0] is word


def test_the_offset_is_that_of_the_record_that_is_due() -> None:
    """The last one at or before the database's own; if there is none, the newest."""
    assert judge(None, logged((3, "a"), (9, "b"), (12, "c")), WHOLE) == (Word.MISSING, 9)
    assert judge(None, logged((12, "c")), WHOLE) == (Word.PENDING, 12)
    assert judge(content("x"), [], WHOLE) == (Word.EXTRA, None)


records_of_a_key = st.lists(
    st.tuples(st.none() | st.sampled_from("abc"), st.booleans()), min_size=1, max_size=12
)


@given(records_of_a_key, st.data())
def test_no_beginning_of_a_changelog_is_called_damaged(
    found: list[tuple[str | None, bool]], data: st.DataObject
) -> None:
    """A database that holds the log up to any point, and claims any offset up to there, has no bad word.

    What was not committed is behind its offset. Compaction may have been anywhere before the first of these: of the
    cleaned part it leaves the last record of the key, and not even that if it is an old tombstone.
    """
    claimed = data.draw(st.integers(-1, len(found) - 1))
    reached = data.draw(st.integers(max(claimed, 0), len(found) - 1))
    records = [Logged(n, content(x[0]), x[1] or n <= claimed) for n, x in enumerate(found)]
    cleaned = data.draw(st.integers(0, next((x.offset for x in records if not x.is_committed), len(found))))
    left = records[:cleaned][-1:]
    if left and left[0].content is None and data.draw(st.booleans()):
        left = []
    kept = left + records[cleaned:]
    missing = {x.offset for x in records} - {x.offset for x in kept}
    known = KnownKeys(
        None if claimed < 0 else claimed,
        0,
        has_gaps=bool(missing),
        has_gaps_after=any(x > claimed for x in missing),
        is_fresh=False,
    )
    word, _ = judge(records[reached].content, kept, known)
    assert word not in DAMAGE
    if not missing:
        assert word is not Word.UNDECIDABLE


def test_the_worst_word_is_the_stores() -> None:
    """Missing before extra before different before what is not decided."""
    assert sum_up({}) is Word.EQUAL
    assert sum_up({Word.EQUAL: 5, Word.EXPIRED: 7}) is Word.EQUAL
    assert sum_up({Word.EQUAL: 5, Word.PENDING: 1}) is Word.BEHIND
    assert sum_up({Word.BEHIND: 5, Word.AHEAD: 1}) is Word.AHEAD
    assert sum_up({Word.UNDECIDABLE: 1, Word.DIFFERENT: 1, Word.MISSING: 1}) is Word.MISSING
