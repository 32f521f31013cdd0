"""The event contract: the one thing that agent and rollup share.

A leaf: standard library only, and nothing else of the agent. `fields` is the single source, `events`
names the enumerations and the record type, `codec` turns records into lines and back.
"""
