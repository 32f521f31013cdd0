"""From which commit this was built. `tools/build_hook.py` writes the line into what it builds; a checkout has none."""

from __future__ import annotations

COMMIT = "unknown"
