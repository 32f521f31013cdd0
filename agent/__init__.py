"""statewarden's per-pod agent: audits the on-disk state of Kafka Streams applications.

This module imports nothing, so that importing `agent.contract` costs nothing.
"""

__version__ = "0.3.0"
