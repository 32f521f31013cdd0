"""Pages of detectors and rules: the head follows the code, what people wrote below it stays."""

from __future__ import annotations

from tools.unit_pages import MARKER, as_markdown, unit_pages


def test_a_page_keeps_what_people_wrote() -> None:
    """Rendering a page again replaces its head and keeps everything below the marker."""
    for render in unit_pages().values():
        page = render("")
        assert page.endswith(f"{MARKER}\n")
        assert render(f"an older head\n{MARKER}\n## Diagnosis\n\nLook.\n") == f"{page}## Diagnosis\n\nLook.\n"


def test_a_page_without_marker_is_all_by_hand() -> None:
    """A page that somebody started without the head loses nothing."""
    render = next(iter(unit_pages().values()))
    assert render("## Diagnosis\n").endswith(f"{MARKER}\n## Diagnosis\n")


def test_rendering_twice_changes_nothing() -> None:
    """A page that is in step stays as it is."""
    for render in unit_pages().values():
        page = render("## Diagnosis\n")
        assert render(page) == page


def test_sections_become_bullets() -> None:
    """Each section of a docstring is one bullet, its continuation lines included."""
    text = "Detector `a-b`: it broke.\n\nFires when it\nbroke.\nBlind spots: none\n    at all."
    assert (
        as_markdown(text) == "It broke.\n\n- **Fires when** it\n  broke.\n- **Blind spots**: none\n  at all."
    )
