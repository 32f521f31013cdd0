"""The words of a comparison, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.verify.compare import Example, Tally
from agent.verify.kinds import Kind
from agent.verify.places import Store
from agent.verify.report import exit_code, json_line, key_text, paragraph
from agent.verify.rule import DAMAGE, Word
from agent.verify.verify import Result

WIN = Store("app", "0_1", "win", Path("/state/app/0_1"), {1000: Path("/a"), 2000: Path("/b")})


@pytest.fixture
def lost() -> Result:
    """Give a store that lost a segment."""
    tally = Tally(5)
    for number in range(20):
        tally.add(Example(Word.MISSING, b"key%d" % number, number, None, 1000))
    result = Result(WIN, Word.MISSING, topic="app-win-changelog", kind=Kind.WINDOW, end=40)
    result.offsets = {1000: 39, 2000: None}
    result.by_segment = {1000: tally}
    result.tally.most = 2
    result.tally.join(tally)
    result.tally.counts[Word.EQUAL] = 20
    return result


def test_people_see_word_store_counts_segment_and_keys(lost: Result) -> None:
    """The store's word first; keys as hashes."""
    text = paragraph(lost, {}, show_keys=False)
    assert text.splitlines()[:3] == [
        "MISSING       app/0_1/win  (window; app-win-changelog-1 from 0 to 40; 2 segments)",
        "              20 keys missing, 20 equal",
        "              segment 1000 (offset 39): 20 keys missing",
    ]
    assert len(text.splitlines()) == 5
    assert "key1" not in text
    assert "'key1' in segment 1000; the changelog has it at offset 1" in paragraph(lost, {}, show_keys=True)


def test_programs_see_the_same(lost: Result) -> None:
    """One line."""
    row = json.loads(json_line(lost, {0: "a note"}, show_keys=True))
    assert row["counts"] == {"missing": 20, "equal": 20}
    assert row["segments"] == [{"start_ms": 1000, "offset": 39, "is_there": True, "counts": {"missing": 20}}]
    assert row["examples"][0] == {
        "word": "missing",
        "key": "'key0'",
        "offset": 0,
        "segment_start_ms": 1000,
        "note": "a note",
    }
    assert (row["task_id"], row["partition"], row["offset"]) == ("0_1", 1, None)


def test_a_store_that_was_perhaps_killed_has_a_caveat(lost: Result) -> None:
    """Values that nobody logged may be unsent ones; missing keys may not."""
    assert "perhaps not closed" not in paragraph(lost, {}, show_keys=False)
    lost.tally.counts[Word.EXTRA] = 1
    assert "perhaps not closed" in paragraph(lost, {}, show_keys=False)
    lost.is_closed = True
    assert "perhaps not closed" not in paragraph(lost, {}, show_keys=False)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([Word.EQUAL], 0),
        ([Word.BEHIND, Word.AHEAD], 0),
        ([Word.EQUAL, Word.UNDECIDABLE], 3),
        ([Word.UNDECIDABLE, Word.EXTRA], 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst(words: list[Word], code: int) -> None:
    """A word that is asked for goes before what could not be judged."""
    assert exit_code([Result(WIN, word) for word in words], frozenset(DAMAGE)) == code


@pytest.mark.parametrize(
    ("key", "text"), [(b"a'b", 'key "a\'b"'), (b"\xff\0", "key 0xff00"), (b"a\nb", "key 0x610a62")]
)
def test_keys_in_the_clear_cannot_write_to_a_terminal(key: bytes, text: str) -> None:
    """Text where it is text, else hexadecimal."""
    assert key_text(key, show_keys=True) == text
    assert key_text(key, show_keys=False) != key_text(key + b"1", show_keys=False)
