"""The agent itself: is it alive, what does it cost, what went wrong in it."""

from __future__ import annotations

from agent.inventory.blind_causes import Step
from agent.publish.metric import Metric, MetricKind, by, flags, one, seconds

_G, _C = MetricKind.GAUGE, MetricKind.COUNTER

AGENT = (
    Metric(
        "statewarden_agent_build_info",
        MetricKind.INFO,
        "Version of the agent.",
        lambda s: flags([s.agent_version]),
        labels=("version",),
    ),
    Metric("statewarden_agent_up", _G, "Whether the agent's worker is alive.", lambda s: one(s.up)),
    Metric(
        "statewarden_agent_ready",
        _G,
        "Whether the watch is armed and the first scan is done.",
        lambda s: one(s.ready),
    ),
    Metric(
        "statewarden_agent_preflight",
        _G,
        "Result of each preflight check: 0 ok, 1 warning, 2 failed; absent before the first round.",
        lambda s: by(s.preflight),
        labels=("kind",),
    ),
    Metric(
        "statewarden_agent_heartbeat_timestamp_seconds",
        _G,
        "When the worker's loop last completed a turn.",
        lambda s: one(seconds(s.heartbeat_at_us)),
        unit="seconds",
    ),
    Metric(
        "statewarden_agent_detector_runs_total",
        _C,
        "Runs of the detector.",
        lambda s: by({x.detector: x.runs for x in s.detectors}),
        labels=("detector",),
    ),
    Metric(
        "statewarden_agent_detector_failures_total",
        _C,
        "Runs of the detector that raised.",
        lambda s: by({x.detector: x.failures for x in s.detectors}),
        labels=("detector",),
    ),
    Metric(
        "statewarden_agent_detector_duration_seconds_total",
        _C,
        "Time spent in the detector, extrapolated from every 16th judgement.",
        lambda s: by({x.detector: x.duration_s for x in s.detectors}),
        unit="seconds",
        labels=("detector",),
    ),
    Metric(
        "statewarden_agent_resident_memory_bytes",
        _G,
        "Resident memory of the agent; absent while it is not measured.",
        lambda s: one(s.resident_memory_bytes),
        unit="bytes",
    ),
    Metric(
        "statewarden_agent_self_limited",
        _G,
        "Whether the agent does less to stay below its own ceilings of CPU and memory, by step.",
        lambda s: flags(s.watch.self_limited),
        labels=("kind",),
        initial={"kind": tuple(step.slug for step in Step if step)},
    ),
    Metric(
        "statewarden_agent_baselines_written_total",
        _C,
        "Times that the baseline, which a restarted agent resumes from, was written.",
        lambda s: one(s.watch.baselines_written),
    ),
    Metric(
        "statewarden_agent_baseline_failures_total",
        _C,
        "Times that the baseline, which a restarted agent resumes from, could not be written.",
        lambda s: one(s.watch.baseline_failures),
    ),
    Metric(
        "statewarden_agent_collector_errors_total",
        _C,
        "Metric families that could not be computed in a scrape and were left empty.",
        lambda s: one(s.collector_errors),
    ),
)
