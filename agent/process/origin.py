"""Settings -> the origin that every event of this agent carries: its pod, its node, and a fresh boot id."""

from __future__ import annotations

import os

from agent import __version__
from agent.config import AgentSettings
from agent.contract.events import Origin


def make_origin(settings: AgentSettings) -> Origin:
    """Who speaks: identity from the settings, a fresh boot id."""
    return Origin(
        pod_uid=settings.pod_uid or settings.pod,
        boot_id=os.urandom(6).hex(),
        pod=settings.pod,
        namespace=settings.namespace,
        cluster=settings.cluster,
        node=settings.node,
        agent_version=__version__,
    )
