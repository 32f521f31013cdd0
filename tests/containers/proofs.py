"""What must hold of the image, and of two containers that share a volume. Each part yields what it saw, or raises."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.containers import contents
from tests.containers.java_pod import RELEASE, ContainerStage
from tests.containers.pod import AGENT_UID, SidecarPod
from tests.containers.podman import AGENT, BASE, ROLLUP, ROOT, make_image, mounted, podman, size_bytes
from tests.lab.processes import Broker
from tests.support.shipped import last_findings, shipped_records

MIB = 1 << 20
IMAGE_MIB = 75
"""Goal for the agent's whole image, unpacked."""


class ProofError(Exception):
    """Something does not hold."""


def require(holds: object, what: str) -> None:
    """Raise if something does not hold."""
    if not holds:
        raise ProofError(what)


def image(home: Path) -> Iterator[str]:
    """Size, user, entry point, byte code, and what is not there."""
    whole = size_bytes(AGENT) / MIB
    require(whole < IMAGE_MIB, f"the agent's image is {whole:.1f} MiB")
    yield f"base {size_bytes(BASE) / MIB:.0f} MiB, agent's image {whole:.1f} MiB"
    config = json.loads(podman("image", "inspect", AGENT))[0]["Config"]
    require(config["User"] == f"{AGENT_UID}:{AGENT_UID}", f"user {config['User']}")
    require(config["Entrypoint"] == ["/opt/statewarden/bin/statewarden"], str(config["Entrypoint"]))
    require(config["StopSignal"] == "SIGTERM", str(config.get("StopSignal")))
    yield f"user {config['User']}, entry point {config['Entrypoint']} {config['Cmd']}"
    python = ("run", "--rm", "--read-only", "--entrypoint", "/opt/statewarden/bin/python", AGENT)
    loaded = podman(*python, "-c", _COMPILED)
    require(loaded.endswith(" 0"), f"loaded without byte code: {loaded}")
    yield f"modules loaded by the agent: {loaded.split()[0]}, of them without byte code: 0"
    yield from _contents(AGENT, "agent")


def _contents(name: str, image: str) -> Iterator[str]:
    """Read the image's root, and keep what dpkg has recorded for the bill of materials."""
    with mounted(name) as root:
        found = contents.strays(root, image)
        packages = contents.recorded(root)
    require(not found, f"in the image: {'; '.join(found[:20])}")
    built = ROOT / "build" / "images"
    built.mkdir(parents=True, exist_ok=True)
    (built / f"image-{name.rpartition('statewarden-')[2]}.dpkg-status").write_text(packages, encoding="utf-8")
    yield (
        f"{packages.count('Package: ')} Debian packages, each with its licence; no package manager, pip or compiler, "
        "no set-user-id file, nothing that every user may write, no byte code bound to a time"
    )


_COMPILED = """
import sys, agent.cli, agent.process.supervisor, os
modules = [m for m in list(sys.modules.values()) if m.__name__ != "__main__"]
files = [m.__cached__ for m in modules if getattr(m, "__cached__", None)]
print(len(files), sum(not os.path.exists(f) for f in files))
"""


@contextmanager
def _staged(home: Path, name: str) -> Iterator[tuple[SidecarPod, ContainerStage]]:
    """Give a pod with the application's topics made; nothing runs in it yet but the broker beside it."""
    broker = Broker(home / "broker")
    try:
        one = SidecarPod(home / "pod", name)
        try:
            stage = ContainerStage(broker, one, name)
            try:
                yield one, stage
            finally:
                stage.close()
        finally:
            one.close()
    finally:
        broker.stop()


def pod(home: Path) -> Iterator[str]:
    """Watch, lock query, finding: Kafka Streams and agent in containers of their own that share a volume."""
    with _staged(home, "sw-pod") as (one, stage):
        one.start_agent(sets=stage.sets())
        one.wait_ready()
        stage.send(3000)
        stage.start_in_container()
        stage.settle()
        stage.wait_committed()
        held = one.metric("statewarden_task_held", task_id="0_0")
        one.wait(lambda: one.metric("statewarden_task_held", task_id="0_0") == 1.0, f"0_0 is held ({held})")
        yield f"Kafka Streams {RELEASE}, exactly-once: task 0_0 seen as held, {len(stage.tasks('a'))} tasks"
        yield from _locks(one, stage)
        one.wait(
            lambda: (
                one.metric("statewarden_findings_open", detector="stale-eos-checkpoint", severity="warning")
                or one.metric("statewarden_findings_open", detector="stale-eos-checkpoint", severity="info")
                or _more(stage)
            ),
            "the exposure of KAFKA-20685 is found",
            90,
        )
        yield "finding while it runs: stale-eos-checkpoint (KAFKA-20685 exposure)"
        require(one.metric("statewarden_agent_watch_events_total"), "no notification came through")
        missed = one.metric("statewarden_agent_missed_changes_total", cause="unannounced")
        require(missed == 0.0, f"{missed} changes were not announced")
        canary = one.metric("statewarden_agent_canary")
        require(canary == 1.0, "no canary")
        events = one.metric("statewarden_agent_watch_events_total")
        yield f"inotify through the read-only mount: {events:.0f} notifications, 0 changes missed, canary comes back"
        stage.kill_container()
        one.wait(lambda: one.metric("statewarden_task_held", task_id="0_0") == 0.0, "the kill is noticed")
        yield "SIGKILL of the application's container: task 0_0 let go"
        stage.start_in_container()
        stage.settle()
        stage.wait_committed()
        stage.close_app()
        assert one.agent is not None
        require(one.agent.stop() == 0, "the agent did not stop in order")
        found = {
            (x["detector"], x["severity"], x["status"]) for x in last_findings(shipped_records(one.shipped))
        }
        yield f"findings shipped: {', '.join(sorted('/'.join(x) for x in found))}"
        require(
            any(x[0] == "skipped-eos-wipe" for x in found), "the skipped wipe after the kill was not found"
        )


def _more(stage: ContainerStage) -> bool:
    """Let the application work: an exposure needs a flush after the checkpoint."""
    stage.send(500)
    return False


def _locks(one: SidecarPod, stage: ContainerStage) -> Iterator[str]:
    application = f"/state/{stage.id}"
    paths = [f"{application}/.lock", f"{application}/0_0/rocksdb/kv/LOCK"]
    apart = one.query_locks(paths)
    require(apart == [("held", 0), ("held", 0)], f"lock query from another container: {apart}")
    yield "lock query (.lock of the JVM, LOCK of RocksDB) from a container of its own: held, holder pid 0"
    together = one.query_locks(paths, "--pid", f"container:{stage.container}")
    require(together == [("held", 1), ("held", 1)], f"lock query in the holder's PID namespace: {together}")
    yield "the same in the application's PID namespace: held, holder pid 1"


def order(home: Path) -> Iterator[str]:
    """SIGTERM: to the agent after the application (native sidecar), and to both at once (plain container)."""
    with _staged(home, "sw-order") as (one, stage):
        for variant, linger_s in (
            ("native sidecar: application first", 0),
            ("plain container: both at once", 20),
        ):
            one.start_agent(settings={"STATEWARDEN_LINGER_SECONDS": linger_s}, sets=stage.sets())
            one.wait_ready()
            stage.send(500)
            stage.start_in_container()
            stage.settle()
            one.wait(lambda: one.metric("statewarden_task_held", task_id="0_0") == 1.0, "0_0 is held")
            closing = threading.Thread(target=stage.close_app, args=(3.0 if linger_s else 0.0,))
            closing.start()
            if not linger_s:
                closing.join()
            assert one.agent is not None
            began_s = time.monotonic()
            code = one.agent.stop()
            took_s = time.monotonic() - began_s
            closing.join()
            require(code == 0, f"{variant}: exit code {code}")
            yield f"{variant}: exit code 0, {took_s:.1f} s after SIGTERM; {_last_words(one)}"
            one.agent.remove()


def _last_words(one: SidecarPod) -> str:
    records = shipped_records(one.shipped)
    boot = max(records, key=lambda x: str(x["observed_at_us"]))["boot_id"]
    own = [x for x in records if x["boot_id"] == boot]
    sequences = [x["sequence"] for x in own]
    require(sequences == list(range(1, len(own) + 1)), f"holes in the sequence: {sequences}")
    require(own[-1]["kind"] == "lifecycle" and own[-1]["phase"] == "stopping", f"last record: {own[-1]}")
    changes = [str(x.get("change")) for x in own if x["kind"] == "transition"]
    ended = [
        x for x in changes if x in ("process-ended", "task-released", "store-closed", "checkpoint-written")
    ]
    require("process-ended" in changes, f"the application's end was not told: {changes[-8:]}")
    return f"{len(own)} records shipped without a hole, the last is `stopping`; {len(ended)} tell of the orderly close"


def rollup(home: Path) -> Iterator[str]:
    """The fleet audit in its own image: read-only root, 1 GiB, events of a recorded run, the verdict that is due."""
    # what Maven has fetched before; the build's user is root, whoever runs it
    name = make_image(ROLLUP, f"{Path.home() / '.m2'}:{Path('/', 'root', '.m2')}")
    yield f"base {size_bytes(BASE) / MIB:.0f} MiB, rollup's image {size_bytes(name) / MIB:.0f} MiB"
    yield from _contents(name, "rollup")
    events, out = home / "events", home / "out"
    out.mkdir()
    out.chmod(0o777)
    sets = ("processing_guarantee=exactly_once_v2", "kafka_streams_version=4.1.2", "num_standby_replicas=0")
    flags = [part for one in sets for part in ("--set", one)]
    trace = ROOT / "tests" / "data" / "traces" / "kafka-20685-4.1.2" / "trace-pod-a.jsonl.gz"
    command = [sys.executable, "-m", "agent", "replay", str(trace), "--events", str(events), *flags]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    run = (
        "run", "--rm", "-m", "1g", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all",
        "--security-opt", "no-new-privileges", "--tmpfs", "/tmp:rw,exec,size=512m",
        "-v", f"{events}:/events:ro", "-v", f"{out}:/out", name,
    )  # fmt: skip
    for kind in ("delta", "s3a", "kafka"):
        jars = podman(*run, "jars", kind).splitlines()
        yield f"{kind}: {len(jars)} jars in the image, each as pinned"
    podman(*run, "ingest", "--input", "/events", "--bronze", "/out/bronze")
    podman(
        *run,
        "audit",
        "--input",
        "/out/bronze",
        "--output",
        "/out/audit",
        "--fail-on",
        "critical",
        expected=(1,),
    )
    found = [json.loads(line) for line in (out / "audit" / "findings.jsonl").read_text().splitlines()]
    rules = sorted({str(one["detector"]) for one in found})
    require("stale-eos-state" in rules, f"found: {rules}")
    yield f"ingest and audit with a read-only root in 1 GiB: {', '.join(rules)}"
