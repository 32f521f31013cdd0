"""`ingest` and `audit` by `spark-submit --deploy-mode cluster` on Kubernetes, with the rights that our manifest gives.

The control plane is real: admission, scheduling, the service account and its token, the Role of
`deploy/manifests/scheduled-spark-application.yaml`. Its nodes are simulated, so `Hands` below does for Spark's pods
what a kubelet and an image would: it starts their command on this machine in a mount namespace with the pod's token
and the name of the driver's service. Needs root, and what `tests/cluster/build.sh cluster` builds.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from spark_rollup.spark import needs  # noqa: E402 - path first
from tests.prove.cluster import SCENARIOS, SPARK, compared, packed, run  # noqa: E402
from tests.support.charts import Manifest, objects  # noqa: E402
from tests.support.control_plane import Cluster, control_plane  # noqa: E402
from tests.support.recorded_fleet import replayed  # noqa: E402

MANIFEST = ROOT / "deploy" / "manifests" / "scheduled-spark-application.yaml"
NAMESPACE = ACCOUNT = "statewarden-rollup"
CLAIM, EXECUTORS = "bronze-events", 2
POLL_S = 0.3
SUBMIT_S = 600.0
_IN_NAMESPACE = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
cp "$TOKEN" /run/secrets/kubernetes.io/serviceaccount/token
cp "$AUTHORITY" /run/secrets/kubernetes.io/serviceaccount/ca.crt
mount --bind "$HOSTS" /etc/hosts
exec "$@"
"""


class Hands:
    """Runs Spark's pods on this machine, as they come."""

    def __init__(self, cluster: Cluster, work: Path) -> None:
        """Begin to look for pods; `work` has what they would have on their own file systems."""
        self._cluster, self._work = cluster, work
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._told: set[str] = set()
        self._is_over = threading.Event()
        self.executors: set[str] = set()
        self.failure = ""
        (work / "token").write_text(cluster.do("create", "token", ACCOUNT, "-n", NAMESPACE))
        self._thread = threading.Thread(target=self._work_on, name="hands")
        self._thread.start()

    def submit(self, command: Sequence[str], cwd: Path) -> None:
        """Run `spark-submit`, which waits for the driver's end."""
        surroundings = os.environ | {"KUBECONFIG": str(self._cluster.kubeconfig)}
        with (self._work / "submit.log").open("w+b") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=cwd, env=surroundings
            )
            give_up_s = time.monotonic() + SUBMIT_S
            while process.poll() is None and not self.failure and time.monotonic() < give_up_s:
                time.sleep(POLL_S)
            process.kill()
            process.wait()
            log.seek(0)
            last = log.read()[-2000:].decode(errors="replace")
        # 1: the audit found something critical, or Spark failed: the tables tell
        if self.failure or process.returncode not in (0, 1):
            raise RuntimeError(f"spark-submit: {self.failure or process.returncode}: {last}")

    def close(self) -> None:
        """End everything that still runs."""
        self._is_over.set()
        self._thread.join()
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _work_on(self) -> None:
        while not self._is_over.wait(POLL_S):
            try:
                pods = {
                    pod["metadata"]["name"]: pod
                    for pod in self._cluster.get("pods", "-n", NAMESPACE, "-l", "spark-role")
                }
                for name, pod in pods.items():
                    if name not in self._processes and pod.get("status", {}).get("phase") == "Running":
                        self._start(name, pod)
                for name, process in self._processes.items():
                    if name not in pods and process.poll() is None:
                        process.send_signal(signal.SIGTERM)
                    elif (
                        name in pods
                        and process.poll() is not None
                        and name not in self.executors | self._told
                    ):
                        self._told.add(name)
                        self._tell_end(name, pods[name], process.returncode)
            except Exception as error:  # noqa: BLE001 - told by `submit`, which would wait for ever
                self.failure = repr(error)
                return

    def _start(self, name: str, pod: Manifest) -> None:
        files = self._files(pod)
        if files is None:
            return  # as a kubelet does: Spark makes the map after the pod
        home = self._work / name
        (home / "conf").mkdir(parents=True)
        for file, text in files.items():
            (home / "conf" / file).write_text(text)
        (container,) = pod["spec"]["containers"]
        given = {one["name"]: one.get("value", "127.0.0.1") for one in container["env"]}
        (home / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}{self._service_names()}\n")
        own = {
            "TOKEN": str(self._work / "token"),
            "AUTHORITY": str(self._cluster.authority),
            "HOSTS": str(home / "hosts"),
            "SPARK_HOME": str(SPARK),
            "SPARK_CONF_DIR": str(home / "conf"),
            "SPARK_LOCAL_DIRS": str(home),
            "PYSPARK_PYTHON": sys.executable,
        }
        kind, *arguments = container["args"]
        if kind == "executor":
            self.executors.add(name)
            command = _executor(given, name)
        else:
            properties = arguments.index("--properties-file") + 1
            arguments[properties] = str(home / "conf" / "spark.properties")
            bind = f"spark.driver.bindAddress={given['SPARK_DRIVER_BIND_ADDRESS']}"
            command = [
                str(SPARK / "bin" / "spark-submit"),
                "--conf",
                bind,
                "--deploy-mode",
                "client",
                *arguments,
            ]
        with (self._work / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                ["unshare", "--mount", "bash", "-c", _IN_NAMESPACE, "bash", *command],
                stdout=log, stderr=subprocess.STDOUT, cwd=home, env=os.environ | given | own,
            )  # fmt: skip

    def _files(self, pod: Manifest) -> dict[str, str] | None:
        files: dict[str, str] = {}
        for volume in pod["spec"]["volumes"]:
            if "configMap" in volume:
                name = volume["configMap"]["name"]
                found = self._cluster.kubectl("get", "configmap", "-n", NAMESPACE, name, "--output=json")
                if found.returncode:
                    return None
                files |= json.loads(found.stdout)["data"]
        return files

    def _service_names(self) -> str:
        services = self._cluster.get("services", "-n", NAMESPACE)
        return "".join(f" {one['metadata']['name']}.{NAMESPACE}.svc" for one in services)

    def _tell_end(self, name: str, pod: Manifest, code: int) -> None:
        statuses = pod["status"]["containerStatuses"]
        statuses[0]["state"] = {"terminated": {"exitCode": code}}
        body = {"status": {"phase": "Failed" if code else "Succeeded", "containerStatuses": statuses}}
        self._cluster.do(
            "patch",
            "pod",
            name,
            "-n",
            NAMESPACE,
            "--subresource=status",
            "--type=merge",
            f"--patch={json.dumps(body)}",
        )


def _executor(given: Mapping[str, str], name: str) -> list[str]:
    """Spell what the entry point of Spark's image runs for an executor."""
    options = [given[key] for key in sorted(given) if key.startswith("SPARK_JAVA_OPT_")]
    flags = {
        "driver-url": "SPARK_DRIVER_URL",
        "executor-id": "SPARK_EXECUTOR_ID",
        "cores": "SPARK_EXECUTOR_CORES",
        "app-id": "SPARK_APPLICATION_ID",
        "resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    }
    spelled = [part for flag, key in flags.items() for part in (f"--{flag}", given[key])]
    backend = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    return [
        "java", *options, f"-Xmx{given['SPARK_EXECUTOR_MEMORY']}", "-cp", f"{SPARK}/jars/*", backend, *spelled,
        "--hostname", "127.0.0.1", "--podName", name,
    ]  # fmt: skip


@contextmanager
def prepared(work: Path) -> Iterator[tuple[Cluster, Hands]]:
    """Run a control plane with the claim, the account and the role that the audit needs."""
    plane = work / "plane"
    plane.mkdir()
    with control_plane(plane) as cluster:
        cluster.namespace(NAMESPACE, level="baseline")
        cluster.volumes(NAMESPACE, CLAIM)
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
            },
        }
        cluster.do("apply", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(claim))
        for one in objects(MANIFEST.read_text("utf-8")):
            if one["kind"] != "ScheduledSparkApplication":  # its definition could not be had
                text = json.dumps(one).replace('"audits"', f'"{NAMESPACE}"')
                cluster.do("apply", "-f", "-", stdin=text)
        pods = work / "pods"
        pods.mkdir()
        hands = Hands(cluster, pods)
        try:
            yield cluster, hands
        finally:
            hands.close()


def submitted(cluster: Cluster, work: Path) -> list[str]:
    """Give the beginning of the command line of `docs/rollup.md`."""
    main = work / "rollup.py"
    main.write_text("from spark_rollup.cli import main\n\nraise SystemExit(main())\n")
    settings = {
        "spark.kubernetes.container.image": "statewarden-rollup",
        "spark.kubernetes.namespace": NAMESPACE,
        "spark.kubernetes.authenticate.driver.serviceAccountName": ACCOUNT,
        "spark.executor.instances": EXECUTORS,
        "spark.kubernetes.driver.master": cluster.server,  # there is no service network here
        "spark.pyspark.python": sys.executable,
        **{
            f"spark.kubernetes.{who}.volumes.persistentVolumeClaim.{CLAIM}.{key}": value
            for who in ("driver", "executor")
            for key, value in (("options.claimName", CLAIM), ("mount.path", work / "shared"))
        },
    }
    flags = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    return [
        str(SPARK / "bin" / "spark-submit"), "--master", f"k8s://{cluster.server}", "--deploy-mode", "cluster",
        "--name", "statewarden-rollup", "--executor-memory", "512m", *flags,
        "--jars", ",".join(f"local://{jar}" for jar in needs.bring([needs.DELTA], None, {})),
        "--py-files", f"local://{packed(work)}", f"local://{main}",
    ]  # fmt: skip


def main() -> int:
    """Run both ways, compare, tell what ran."""
    scenarios = sys.argv[1:] or SCENARIOS
    with tempfile.TemporaryDirectory(prefix="statewarden-k8s-") as folder:
        work = Path(folder)
        shared = work / "shared"
        replayed([ROOT / "tests" / "data" / "traces" / name for name in scenarios], shared / "events")
        with prepared(work) as (cluster, hands):
            begin = submitted(cluster, work)

            def locally(*words: str) -> None:
                run([sys.executable, "-m", "spark_rollup", *words], work)

            def on_kubernetes(*words: str) -> None:
                hands.submit([*begin, *words], work)

            ways = {"local": locally, "kubernetes": on_kubernetes}
            holds = compared(ways, shared / "events", shared)
            executors = len(hands.executors)
    holds = holds and executors == 2 * EXECUTORS
    sys.stdout.write(f"executors: {executors}; {'holds' if holds else 'FAILS'}\n")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
