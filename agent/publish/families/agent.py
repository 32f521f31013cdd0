"""The agent itself: is it alive, what does it cost, what went wrong in it."""

from __future__ import annotations

from agent.inventory.blind_causes import Step
from agent.publish.metric import Metric, by, flags, seconds

# fmt: off
AGENT = (
    Metric("statewarden_agent_build_info", "Version of the agent.", lambda s: flags([s.agent_version]),
           labels=("version",)),
    Metric("statewarden_agent_up", "Whether the agent's worker is alive.", lambda s: s.up),
    Metric("statewarden_agent_ready", "Whether the watch is armed and the first scan is done.", lambda s: s.ready),
    Metric("statewarden_agent_preflight",
           "Result of each preflight check: 0 ok, 1 warning, 2 failed; absent before the first round.",
           lambda s: by(s.preflight), labels=("kind",)),
    Metric("statewarden_agent_heartbeat_timestamp_seconds", "When the worker's loop last completed a turn.",
           lambda s: seconds(s.heartbeat_at_us)),
    Metric("statewarden_agent_detector_runs_total", "Runs of the detector.",
           lambda s: by({id_: x.runs for id_, x in s.detectors.items()}), labels=("detector",)),
    Metric("statewarden_agent_detector_failures_total", "Runs of the detector that raised.",
           lambda s: by({id_: x.failures for id_, x in s.detectors.items()}), labels=("detector",)),
    Metric("statewarden_agent_detector_duration_seconds_total",
           "Time spent in the detector, extrapolated from every 16th judgement.",
           lambda s: by({id_: x.seconds for id_, x in s.detectors.items()}), labels=("detector",)),
    Metric("statewarden_agent_resident_memory_bytes",
           "Resident memory of the agent; absent while it is not measured.", lambda s: s.resident_memory_bytes),
    Metric("statewarden_agent_self_limited",
           "Whether the agent does less to stay below its CPU and memory ceilings, by step.",
           lambda s: flags(s.watch.self_limited), labels=("kind",),
           initial={"kind": tuple(step.slug for step in Step if step)}),
    Metric("statewarden_agent_baselines_written_total",
           "Baseline writes; a restarted agent resumes from the baseline.",
           lambda s: s.watch.baselines_written),
    Metric("statewarden_agent_baseline_failures_total",
           "Failed baseline writes.",
           lambda s: s.watch.baseline_failures),
    Metric("statewarden_agent_collector_errors_total",
           "Metric families left empty because of an error.",
           lambda s: s.collector_errors),
)
# fmt: on
