"""The laws alone, on a few recordings; `make evaluate` replays them all."""

from __future__ import annotations

import pytest

from tests.evaluate.laws import UNSEEN, Row, judge, render
from tests.evaluate.run import TRACES

DAMAGED = {
    "torn-clean-3.9.2": "offset-beyond-durable",
    "kafka-7672-eos": "store-shrank",
    "kafka-20685-4.1.2": "data-beyond-changelog",
    "changelog-truncated-3.9.2": "changelog-truncated",
}
TWINS = (
    "benign-8574-finished-2.1.1",
    "exposure-20685-crash-committed-4.1.2",
    "benign-window-expiry-3.9.2",
)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_law_sees_the_damage(name: str) -> None:
    """With every other detector taken away, also without the release."""
    row = judge(TRACES / name)
    assert (row.unseen, row.wrong) == ([], [])
    assert DAMAGED[name] in row.told
    assert DAMAGED[name] in row.untold
    assert [x for x in render([row]).splitlines() if x.startswith(f"| {name} |")]


@pytest.mark.parametrize("name", TWINS)
def test_no_law_reports_a_twin(name: str) -> None:
    """What looks like it, and is right."""
    row = judge(TRACES / name)
    assert (row.told, row.untold, row.wrong) == ({}, {}, [])


def test_what_no_law_sees_is_explained() -> None:
    """Each reason belongs to a recording, and stands on the page."""
    names = [path.name for path in TRACES.iterdir()]
    assert [x for x in UNSEEN if not any(name.startswith(x) for name in names)] == []
    row = Row("kafka-20805-4.3.1", "it was cleaned", {("pod-a", "0_0")})
    assert f"- kafka-20805-4.3.1 (0_0): {UNSEEN['kafka-20805']}." in render([row])


def test_a_wrong_word_is_on_the_page() -> None:
    """What a law says of a task that was right is counted and quoted."""
    row = Row("benign-x", "nothing", set(), wrong=["store-shrank 0_0 on pod-a: it shrank"])
    assert "Wrong words (warning or above, of a task that was right): 1 over" in render([row])
    assert "- wrong, benign-x: store-shrank 0_0 on pod-a: it shrank" in render([row])
