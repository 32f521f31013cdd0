"""What the older code is made to do: of which recordings it makes data, and scripts that its own interpreter runs.

The scripts are texts, not modules: they import what that commit has, which may have other names today.
"""

FLEET = {
    "pod-a": "kafka-7672-gap/trace-pod-a.jsonl.gz",
    "pod-b": "kafka-7672-gap/trace-pod-b.jsonl.gz",
    "pod-c": "kafka-20685-4.1.2/trace-pod-a.jsonl.gz",
}
"""Pod -> the trace that it plays, for the events that bronze is made of."""

REMEMBERED = {
    "deleted": "kafka-8187-stage2-2.0.1/trace-pod-a.jsonl.gz",
    "windowed": "kafka-20685-window-4.0.2/trace-pod-a.jsonl.gz",
    "wiped": "kafka-20685-4.1.2/trace-pod-a.jsonl.gz",
    "upgraded": "benign-upgrade-chain-2.8.2-to-4.3.1/trace-pod-a.jsonl.gz",
}
"""Name of a baseline -> the trace after which it is written."""

FACTS = {"processing_guarantee": "exactly_once_v2", "num_standby_replicas": "0"}
SAMPLE = {"processing_guarantee": "exactly_once_v2", "kafka_streams_version": "4.1.2", "upgrade_from": "3.9"}
"""Values of facts in the settings file; of all others 1 is one."""

BASELINE = """
import sys
from pathlib import Path
from agent.config import load_config
from agent.replay.memory_disk import MemoryDisk
from agent.runtime.baseline import BaselineKeeper
from agent.runtime.pipeline import Pipeline
from agent.runtime.replay_run import first_time_us, replay
from agent.ship.baseline_file import BaselineFile

trace, home, *sets = sys.argv[1:]
QUIET_US = 1_200_000_000
disk, records = MemoryDisk(), []
pipeline = Pipeline(disk, load_config(sets=sets).applications, first_time_us(Path(trace)), records.append)
replay(Path(trace), pipeline, disk, QUIET_US)
BaselineKeeper(BaselineFile(Path(home)), pipeline, "/state").finish(records[-1].observed_at_us, "SIGTERM")
"""
"""Plays a trace and writes the baseline that an agent would have left: TRACE HOME [KEY=VALUE ...]."""

SET_ASIDE = """
import sys
from pathlib import Path
from agent.clock import SystemClock
from agent.contract.events import Origin
from agent.ship.limits import Limits
from agent.ship.spool import Spool

with Spool(Path(sys.argv[1]), Origin("uid-a", "between", "pod-a"), clock=SystemClock(), limits=Limits()) as spool:
    spool.reject(spool.take())
    second = spool.take().segment.path
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(data)
    spool.release()
    spool.take()
    spool.release()
"""
"""Lets the sink reject the first segment of a spool and damages the second: SPOOL."""

SURFACE = """
import argparse, dataclasses, json, re
from pathlib import Path
from agent.cli.main import make_parser
from agent.config import AgentSettings, KubernetesSettings, PrivacySettings, ShipSettings
from agent.inventory.settings import KEYS
from spark_rollup import schemas
from spark_rollup.arguments import parser

TABLES = dict(
    findings=schemas.FINDING, timelines=schemas.TIMELINE, coverage=schemas.COVERAGE, pods=schemas.PODS,
    churn=schemas.CHURN, restarts=schemas.RESTARTS, quarantine=schemas.QUARANTINE,
)

def commands(made):
    found = {}
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found[name] = sorted(x for each in inner._actions for x in each.option_strings)
                found |= {f"{name} {part}": options for part, options in commands(inner).items()}
    return found

GROUPS = {"agent": AgentSettings, "ship": ShipSettings, "privacy": PrivacySettings, "kubernetes": KubernetesSettings}
rules = sorted(path.stem for path in Path("docs/rules").glob("*.md"))
page = Path("docs/metrics.md").read_text()
METRIC = r"^[|] `(statewarden_\\w+)` [|] \\w+ [|] (.*?) [|] (stable|experimental) [|]"
print(json.dumps({
    "statewarden": commands(make_parser()),
    "statewarden-rollup": commands(parser()),
    "detectors": sorted(path.stem for path in Path("docs/detectors").glob("*.md")),
    "rules": rules,
    "settings": {name: dataclasses.asdict(kind()) for name, kind in GROUPS.items()},
    "facts": [key.name for key in KEYS],
    "metrics": {
        name: {"stability": stability, "labels": sorted(re.findall("`(.*?)`", labels))}
        for name, labels, stability in re.findall(METRIC, page, re.M)
    },
    "alerts": sorted({x for path in Path("deploy/alerts").glob("*.yaml")
                      for x in re.findall(r"alert: (\\w+)", path.read_text())}),
    "recorded": sorted({x for path in Path("deploy/alerts").glob("*.yaml")
                        for x in re.findall(r"record: (\\S+)", path.read_text())}),
    "boards": sorted(json.loads(path.read_text())["uid"] for path in Path("deploy/dashboards").glob("*.json")),
    "tables": {name: {x.name: x.dataType.simpleString() for x in kind.fields} for name, kind in TABLES.items()},
}, indent=1))
"""
"""Prints every name that others rely on."""
