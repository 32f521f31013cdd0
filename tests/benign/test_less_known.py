"""Knowing less never adds a critical: a few recordings in every form; `tests/prove/less_known.py` replays them all."""

from __future__ import annotations

import pytest

from tests.prove.less_known import TRACES, added, forms


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("benign-8574-finished-2.1.1", marks=pytest.mark.slow),
        pytest.param(
            "kafka-8187-stage2-2.0.1", marks=pytest.mark.heavy
        ),  # as the next, with six times the operations
        pytest.param("torn-clean-3.9.2", marks=pytest.mark.slow),
        "kafka-20685-4.1.2",
        "exposure-20685-crash-committed-4.1.2",
    ],
)
def test_less_knowledge_adds_no_critical(name):
    """The agent late, its history short, kinds, entries and manifests unread, each fact left out, nothing told."""
    assert added(TRACES / name, starts=2) == []


def test_every_form_is_there():
    """Each kind of knowledge is withheld once, and each fact alone."""
    assert [x.name for x in forms({"processing_guarantee": "exactly_once"}, starts=1)] == [
        "late 1 of 1",
        "thinned flushes",
        "thinned sessions",
        "thinned checkpoints",
        "thinned past",
        "withheld kinds",
        "withheld entries",
        "unread manifests",
        "not told processing_guarantee",
        "nothing told",
    ]
