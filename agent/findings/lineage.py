"""Lineage: which incident a new finding belongs to. Pure.

By mechanism, never by time alone. A finding belongs to an incident of its mechanism and application
- if the incident's last finding about the same task was still open when the process before had ended (an exposure
  that became damage with the next start), or
- if no process of the application ended between them: the same crash, the same start, the same deletion.
The incident's id is made from its first finding, whose id is stable: a restart or another replay gives the same one.
"""

from __future__ import annotations

from dataclasses import dataclass

EPISODES_KEPT = 4_096
"""Ends of processes for which incidents are remembered, one per mechanism; older ones get a new incident."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What lineage needs of a finding."""

    mechanism: str  # Slug
    application_id: str  # application; empty for the agent itself
    task_id: str | None  # task; None for the application
    finding_id: str
    opened_at_us: int  # time of the deciding operation
    process_ended_us: int | None
    """When the last process of the application had ended before that; None = none was seen."""


class Lineage:
    """Remembers which incident each task, and each end of a process, belongs to."""

    def __init__(self) -> None:
        """Start without incidents."""
        self._of_task: dict[tuple[str, str, str | None], tuple[str, str]] = {}
        self._of_episode: dict[tuple[str, str, int | None], str] = {}

    def latest(self, entry: Entry) -> str | None:
        """Return the id of the last finding about the same mechanism and task; None = there is none."""
        known = self._of_task.get((entry.mechanism, entry.application_id, entry.task_id))
        return known[0] if known else None

    def assign(self, entry: Entry, *, goes_on: bool) -> str:
        """Give a new finding its incident.

        `goes_on`: whether the `latest` finding was still open when the last process ended. Gives the incident's id.
        """
        task = (entry.mechanism, entry.application_id, entry.task_id)
        episode = (entry.mechanism, entry.application_id, entry.process_ended_us)
        if goes_on and task in self._of_task:
            incident_id = self._of_task[task][1]
        else:
            incident_id = self._of_episode.get(episode) or f"i-{entry.finding_id[:12]}"
        self.remember(entry, incident_id)
        return incident_id

    def remember(self, entry: Entry, incident_id: str) -> None:
        """Take back a finding of an earlier run; call it in the order in which findings opened."""
        self._of_task[(entry.mechanism, entry.application_id, entry.task_id)] = (
            entry.finding_id,
            incident_id,
        )
        self._of_episode.setdefault(
            (entry.mechanism, entry.application_id, entry.process_ended_us), incident_id
        )
        if len(self._of_episode) > EPISODES_KEPT:
            del self._of_episode[next(iter(self._of_episode))]
