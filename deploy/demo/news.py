"""Which lines of the agents' logs a person needs to see: of one incident each thing once."""

from __future__ import annotations

import threading
from collections import Counter

from deploy.demo.agents import LogLine


class News:
    """Remembers what was shown; safe to use from several threads."""

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self._lock = threading.Lock()
        self._shown: set[tuple[object, ...]] = set()
        self._incidents: set[tuple[str, object]] = set()
        self._counts: Counter[str] = Counter()

    def take(self, pod: str, line: LogLine) -> bool:
        """Count a line; returns whether to show it.

        Remarks and what is over are counted only: the report has them. What a detector says of further tasks of an
        incident is not shown again, and what every agent says about the machine is shown once.
        """
        is_finding = "detector" in line and "change" in line
        with self._lock:
            if not is_finding:
                return line.get("level") not in ("info", "debug") and self._is_new(line.get("message"))
            is_remark = line["severity"] == "info"
            self._counts["remarks" if is_remark else "findings"] += 1
            if is_remark or line["change"] == "resolved":
                return False
            incident = pod, line.get("incident_id")
            self._incidents.add(incident)
            return self._is_new(*incident, line["detector"], line["severity"])

    def __str__(self) -> str:
        """Say how much there was."""
        found = f"incidents: {len(self._incidents)} (log lines: {self._counts['findings']})"
        return f"{found}, remarks: {self._counts['remarks']}"

    def _is_new(self, *what: object) -> bool:
        is_new = what not in self._shown
        self._shown.add(what)
        return is_new
