"""Content that stays encoded, against the bytes that it stands for."""

from __future__ import annotations

import base64
import binascii

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.replay.encoded import Encoded

Numbers = st.none() | st.integers(-40, 40)


@given(st.binary(max_size=30), Numbers, Numbers)
def test_a_slice_is_that_of_the_bytes(content: bytes, start: int | None, end: int | None) -> None:
    """Length and every slice are as of the decoded bytes."""
    encoded = Encoded(base64.b64encode(content).decode())
    assert len(encoded) == len(content)
    assert encoded[start:end] == content[start:end]


@given(st.text(alphabet="AZaz09+/=- \n\u00e9", max_size=12))
def test_what_is_taken_is_base64(text: str) -> None:
    """Nothing is taken that the strict decoder refuses."""
    try:
        encoded = Encoded(text)
    except ValueError:
        return
    assert encoded[:] == binascii.a2b_base64(text, strict_mode=True)


@pytest.mark.parametrize(
    "text", ["A", "AA=", "A===", "=AAA", "AA=A", "AA==AA==", "AAA-", "AA A", "AAA\u00e9"]
)
def test_what_is_no_base64_is_refused(text: str) -> None:
    """A wrong character, length or padding is noticed before anything is decoded."""
    with pytest.raises(ValueError, match=r"base64|ascii"):
        Encoded(text)
