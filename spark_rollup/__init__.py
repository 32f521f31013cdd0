"""The fleet audit: what the agents of many pods shipped, correlated into verdicts.

load -> dedupe -> gaps -> timeline -> correlate -> report. Sees `agent.contract` and nothing else of the agent.
"""

__version__ = "0.3.0"
