"""What alerts say of an incident, in words short enough for a label. Pure."""

from __future__ import annotations

from textwrap import shorten

from agent.contract.grouping import F
from agent.contract.incidents import Incident
from agent.contract.wording import named

SUMMARY_CHARACTERS, STEP_CHARACTERS = 300, 800
"""The step of KAFKA-20685, with the proof before it and three more tasks after it, takes 700."""


def where_to_read(incident_id: str) -> str:
    """Say where an incident is whole."""
    return f"`statewarden explain {incident_id} --events SOURCE`, the agent's page, or the newest report"


def summary_of(incident: Incident[F]) -> str:
    """Say what it is about, what names it by now, how sure that is, and what is wrong: one line for a chat."""
    where = " ".join(x for x in (incident.application_id, named(incident.like_the_lead)) if x)
    on = f" on {named(incident.pods)}" if incident.pods else ""
    how = f"{incident.lead.detector}, {incident.confidence.value}"
    return shorten(
        f"{where or 'The agent'}{on} ({how}): {incident.sentence}", SUMMARY_CHARACTERS, placeholder=" ..."
    )


def step_of(incident: Incident[F]) -> str:
    """Give the one step, whole or not at all: who follows half of it may lose what the other half would have saved."""
    if len(incident.next_action) <= STEP_CHARACTERS:
        return incident.next_action
    return f"Too long for an alert. Read it whole before you remove or start anything: {where_to_read(incident.id)}."
