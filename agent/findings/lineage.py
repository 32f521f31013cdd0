"""Lineage: which incident a new finding belongs to. Pure.

By mechanism, never by time alone. A finding belongs to an incident of its mechanism and application
- if the incident's last finding about the same task was still open when the process before had ended (an exposure
  that became damage with the next start), or
- if no process of the application ended between them: the same crash, the same start, the same deletion.
The incident's id is made from its first finding, whose id is stable: a restart or another replay gives the same one.
"""

from __future__ import annotations

from agent.contract.finding import Finding
from agent.contract.grouping import incident_of

EPISODES_KEPT = 4_096
"""Ends of processes for which incidents are remembered, one per mechanism; older ones get a new incident."""


class Lineage:
    """Remembers which incident each task, and each end of a process, belongs to."""

    def __init__(self) -> None:
        self._of_task: dict[tuple[str, str, str | None], tuple[str, str]] = {}
        self._of_episode: dict[tuple[str, str, int | None], str] = {}

    def latest(self, one: Finding) -> str | None:
        """Return the id of the last finding about the same mechanism and task; None = there is none."""
        return self._of_task.get((one.mechanism, one.application_id, one.task_id), (None, ""))[0]

    def assign(self, one: Finding, *, goes_on: bool) -> str:
        """Give a new finding its incident; `goes_on`: the `latest` one was still open when the last process ended."""
        task = (one.mechanism, one.application_id, one.task_id)
        if goes_on and task in self._of_task:
            incident_id = self._of_task[task][1]
        else:
            episode = (one.mechanism, one.application_id, one.process_ended_at_us)
            incident_id = self._of_episode.get(episode) or incident_of(one.id)
        self.remember(one, incident_id)
        return incident_id

    def remember(self, one: Finding, incident_id: str) -> None:
        """Take back a finding of an earlier run; call it in the order in which findings opened."""
        self._of_task[one.mechanism, one.application_id, one.task_id] = one.id, incident_id
        episode = (one.mechanism, one.application_id, one.process_ended_at_us)
        self._of_episode.setdefault(episode, incident_id)
        if len(self._of_episode) > EPISODES_KEPT:
            del self._of_episode[next(iter(self._of_episode))]
