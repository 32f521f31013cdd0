"""Runbooks: what detectors and rules say of themselves follows the code, what people wrote stays."""

from __future__ import annotations

from tools.unit_pages import runbook_page, unit_pages

NAMES = ("setup", "rules/cloned-volume")
PAGE = "# Title\n\nOne line.\n"
BY_HAND = """
<a id="setup"></a>

an older head

<!-- setup: by hand -->
### Mitigation

Look.

<!-- setup: generated -->
"""


def test_a_page_keeps_what_people_wrote() -> None:
    """Rendering replaces what is generated, and keeps the head of the page and the parts by hand."""
    page = runbook_page(NAMES, PAGE + BY_HAND)
    assert page.startswith(PAGE)
    assert "<!-- setup: by hand -->\n### Mitigation\n\nLook.\n\n<!-- setup: generated -->" in page
    assert "an older head" not in page
    assert page.index("## setup\n") < page.index("## rules/cloned-volume\n")


def test_rendering_twice_changes_nothing() -> None:
    """A page that is in step stays as it is, also a new one."""
    for render in unit_pages().values():
        page = render("")
        assert render(page) == page
