"""Every metric of the agent: the one list that the exposition, the docs page and the alerts agree on.

Names carry no label names and labels carry no target identity (the scrape adds the pod). Timestamps are
exported as such; ages are PromQL's business, but for the one that says how far behind shipping is.
"""

from __future__ import annotations

from agent.publish.families.agent import AGENT
from agent.publish.families.delivery import DIGESTS, KUBERNETES, SHIPPING
from agent.publish.families.state import STATE
from agent.publish.families.watch import WATCH
from agent.publish.metric import Metric

GROUPS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("State of the applications", STATE), ("Watching and reading", WATCH), ("Spool and shipping", SHIPPING),
    ("Digests of stores", DIGESTS), ("Kubernetes Events", KUBERNETES), ("The agent itself", AGENT),
)  # fmt: skip

CATALOGUE: tuple[Metric, ...] = tuple(metric for _, metrics in GROUPS for metric in metrics)
"""Every family, in the order of the exposition and of the docs page."""
