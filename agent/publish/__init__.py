"""Publish: what the agent knows, made visible as metrics, probes and log lines.

Knows values only: the pipeline hands over immutable snapshots and records. May import the layers below
`publish`; never watch, observe, ship or replay.
"""
