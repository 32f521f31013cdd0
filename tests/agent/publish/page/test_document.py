"""The page says what is there, in words, and nothing from a disk can become markup."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.contract.events import Severity
from agent.contract.incidents import gather
from agent.contract.markup import number, plural
from agent.inventory.model import BlindInterval
from agent.publish import page
from agent.publish.page import render
from agent.publish.page_data import INCIDENTS_SHOWN
from tests.agent.publish.page.page_data import NOW_US, finding, hostile_page, page_data, replayed_page
from tests.spark_rollup.report.page.page_check import Balance


class Reader(Balance):
    """Reads a document in which every element is closed: which elements it has, and its text."""

    def __init__(self, document: str) -> None:
        self.words: list[str] = []
        super().__init__(document)
        assert self.open == []

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_a_recorded_incident_is_reported_in_full() -> None:
    """The finding, its evidence, the task with its stores and offsets."""
    reader = Reader(render(replayed_page("kafka-20685-4.1.2")))
    for words in ("1 critical incident", "skipped-eos-wipe", "suspected", "KAFKA-20685", "Next:", "Evidence: ",
                  "0_0", "8 639", "Kafka Streams 4.1.2", "statewarden verify compares a store with"):  # fmt: skip
        assert words in reader.text
    assert "statewarden explain skipped-eos-wipe" in reader.text
    assert "runbooks/skipped-eos-wipe" in reader.links


def test_a_runbook_is_a_link_below_the_operators_address() -> None:
    """Without one it is the agent's own."""
    told = Reader(render(page_data(incidents=tuple(gather([finding()])))))
    assert "https://example.org/docs/runbooks/damaged-files.html#torn-store" in told.links


def test_no_scripts_and_nothing_from_elsewhere() -> None:
    """The page is one document: no script, image, frame or style of somebody else."""
    reader = Reader(render(hostile_page("<script>alert(1)</script>")))
    assert not {"script", "img", "iframe", "object", "embed", "form", "input"} & set(reader.tags)
    assert not [x for x in reader.attributes if x == "src" or x.startswith("on")]


@example(text="</style></title><script>alert(1)</script>")
@example(text="\"'><img src=x onerror=alert(1)>")
@example(text="`0`")
@example(text="\u202eevil\u2066\x00\x1b[31m\udcff")
@given(text=st.text(st.characters(exclude_categories=()), min_size=1, max_size=30))
def test_hostile_names_stay_text(text: str) -> None:
    """Whatever a name holds, the document has the same elements as with a harmless one, and is UTF-8."""
    document = render(hostile_page(text))
    assert Reader(document).tags == Reader(render(hostile_page("x"))).tags
    document.encode("utf-8")
    assert not {"\u202e", "\u2066", "\x00", "\x1b"} & set(document)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Nothing found"),
        ({"ready": False}, "The first walk is not finished yet"),
        ({"applications": (), "applications_total": 0}, "Nothing to watch: no application directory"),
        ({"blind": (BlindInterval(NOW_US, "watch-limit"),)}, "the agent is blind right now"),
        ({"counts": ((Severity.INFO, 1),)}, "Nothing found but 1 remark"),
        ({"counts": ((Severity.WARNING, 1),)}, "1 warning incident"),
        ({"counts": ((Severity.WARNING, 2), (Severity.CRITICAL, 1))}, "1 critical and 2 warning incidents"),
    ],
)  # fmt: skip
def test_the_headline(fields: dict[str, object], words: str) -> None:
    """One line says how things stand, and never that all is well while the agent cannot see."""
    assert words in Reader(render(page_data(**fields))).text


def test_a_task_that_is_undecided_is_not_well() -> None:
    """A crash with data beyond the checkpoint, the guarantee not told: the task is no green one."""
    text = Reader(render(replayed_page("alos-4.1.2-crash", "commit_interval_ms", quiet_us=130_000_000))).text
    assert " undecided " in text
    assert "processing.guarantee" in text


def test_nothing_to_watch_names_the_usual_reason() -> None:
    """The most common mistake of the first hour is on the page."""
    assert (
        "state.dir is not on the volume"
        in Reader(render(page_data(applications=(), applications_total=0))).text
    )


def test_a_blind_interval_says_what_was_not_seen() -> None:
    """The application, the task and the store, as far as they are known; else all of it."""
    places = {"everything": (None, None), "orders": (None, None), "orders/0_1/counts": ("0_1", "counts")}
    for words, (task, store) in places.items():
        application = None if words == "everything" else "orders"
        row = BlindInterval(NOW_US, "watch-limit", application=application, task=task, store=store)
        assert (
            f" {words} "
            in Reader(render(page_data(applications=(), applications_total=0, blind=(row,)))).text
        )


def test_a_silent_worker_is_reported() -> None:
    """What is shown may be old: that stands above it; with nothing to show the page says so."""
    assert (
        "worker did not answer. The data below may be old"
        in Reader(render(page_data(), "the worker did not answer")).text
    )
    assert "Nothing to show yet" in Reader(render(None, "the worker has not started")).text


def test_what_is_left_out_is_counted() -> None:
    """A page with more incidents than it lists says how many more there are."""
    many = page_data(
        incidents=tuple(gather([finding()])) * INCIDENTS_SHOWN,
        counts=((Severity.CRITICAL, INCIDENTS_SHOWN + 7),),
    )
    assert "7 incidents more" in Reader(render(many)).text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 days")]
)
def test_durations(seconds: float, text: str) -> None:
    """The unit grows with the duration."""
    assert page.span(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (123 << 20, "123 MiB"), (5 << 50, "5120 TiB")],
)
def test_sizes(count: int, text: str) -> None:
    """Sizes are binary, with three digits or so."""
    assert page.size(count) == text


def test_moments() -> None:
    """A time of today has no date; a clock that was set back gives no negative age."""
    assert page.moment(NOW_US - 5_000_000, NOW_US).endswith(">22:13:15</time> <small>5 s ago</small>")
    assert "2023-11-13 " in page.moment(NOW_US - 86_400_000_000, NOW_US)
    assert "in 5 s" in page.moment(NOW_US + 5_000_000, NOW_US)


def test_numbers() -> None:
    """Thousands are set apart; what is not known is a dash."""
    assert number(1234567) == "1\u202f234\u202f567"
    assert number(None) == "-"
    assert [plural(count, "task") for count in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]
