"""axe-core in a page of the browser: what it finds against WCAG 2.2 and good practice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.chromium import Browser

SCRIPT = (
    Path(os.environ.get("STATEWARDEN_CACHE") or Path.home() / ".cache" / "statewarden") / "axe" / "axe.min.js"
)


def violations(browser: Browser) -> list[str]:
    """Run every rule of axe-core on the open page, or skip the test; a line per broken rule, with the first places."""
    if not SCRIPT.exists():
        pytest.skip("no axe-core: tools/setup_axe.sh")
    browser.ask(SCRIPT.read_text(encoding="utf-8") + "; undefined")
    found: list[dict[str, Any]] = browser.ask(
        "axe.run(document, {resultTypes: ['violations']}).then(said => said.violations.map("
        "x => ({id: x.id, help: x.help, nodes: x.nodes.slice(0, 3).map(n => n.html.slice(0, 200))})))"
    )
    return [f"{x['id']}: {x['help']}: {x['nodes']}" for x in found]
