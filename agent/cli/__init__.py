"""The command line: `statewarden`. The only place besides tests that knows every part."""

from __future__ import annotations

from agent.cli.main import main

__all__ = ["main"]
