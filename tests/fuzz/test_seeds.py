"""Inputs that fuzzing found interesting: no parser raises anything but its own refusal."""

from __future__ import annotations

import pytest

from tests.fuzz.parsers import PARSERS, run_parser, seeds


@pytest.mark.parametrize("name", PARSERS)
def test_seeds(name):
    """Every committed input of a parser is read or refused."""
    found = seeds(name)
    assert found, "a parser without seeds was never fuzzed"
    for file in found:
        run_parser(name, file.read_bytes())
