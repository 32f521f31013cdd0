"""The log: one JSON object per line, whatever is logged."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from agent import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Give a stream that receives the log, and put the root logger back afterwards."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    target = io.StringIO()
    logs.configure("debug", target)
    yield target
    root.setLevel(level)
    root.handlers[:] = handlers


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    """Parse what was logged."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_fields_of_the_contract_travel_as_extra(stream: io.StringIO) -> None:
    """A line carries time, level, logger, message and every extra; `observed_at_us` becomes its time."""
    extra = {"detector": "d", "task_id": "0_1", "observed_at_us": 1_700_000_000_000_001, "store": None}
    logging.getLogger("agent.x").warning("saw %d", 3, extra=extra)
    assert lines(stream) == [
        {
            "time": "2023-11-14T22:13:20.000001Z",
            "level": "warning",
            "logger": "agent.x",
            "message": "saw 3",
            "detector": "d",
            "task_id": "0_1",
        }
    ]


def test_an_extra_cannot_replace_a_field_of_the_line(stream: io.StringIO) -> None:
    """An extra with the name of the formatter's own field gets an underscore."""
    logging.getLogger("agent.x").info("hello", extra={"level": "damage", "time": 1})
    (line,) = lines(stream)
    assert (line["level"], line["level_"], line["time_"]) == ("info", "damage", 1)


def test_hostile_values_stay_one_line(stream: io.StringIO) -> None:
    """Line breaks, undecodable names and objects of any type end up in one line of ASCII."""
    extra = {"path": "a\nb\udcff", "cause": OSError("gone"), "names": {"b", "a"}}
    logging.getLogger("agent.x").info("x\ny", extra=extra)
    assert stream.getvalue().isascii()
    (line,) = lines(stream)
    assert (line["message"], line["path"], line["cause"]) == ("x\ny", "a\nb\udcff", "gone")
    assert line["names"] == ["a", "b"]


def test_a_traceback_is_one_field(stream: io.StringIO) -> None:
    """An exception's traceback travels in `error`."""
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("agent.x").exception("failed")
    (line,) = lines(stream)
    assert str(line["error"]).endswith("ValueError: broken")


def test_configuring_again_replaces_the_stream(stream: io.StringIO) -> None:
    """A second call logs to the new stream only, at the new level."""
    second = io.StringIO()
    logs.configure(logging.ERROR, second)
    logging.getLogger("agent.x").warning("quiet")
    logging.getLogger("agent.x").error("loud")
    assert stream.getvalue() == ""
    assert [line["message"] for line in lines(second)] == ["loud"]


def test_an_unknown_level_is_refused(stream: io.StringIO) -> None:
    """A level that logging does not know raises."""
    with pytest.raises(ValueError, match="CHATTY"):
        logs.configure("chatty", stream)
