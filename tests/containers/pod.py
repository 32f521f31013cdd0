"""Two containers that share a volume, as the chart puts them into one pod: an application, and the agent beside it."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.demo.agents import free_port
from tests.containers.podman import AGENT, BASE, Container, ContainerError, podman
from tests.support.exposed import answered, scraped

APPLICATION_UID, AGENT_UID, GROUP = 10001, 65532, 2000
"""Two users, one group: what one `runAsGroup` does in a pod."""

READY_S = 60.0
PROBE_S = 0.2
"""An answer to a probe takes the agent 0.6 ms of CPU: a hundred a second would be most of what 0.1 CPU has."""
_LOCK_QUERY = """
import fcntl, struct, sys
form = struct.Struct("@hhqqi0q")
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        answer = form.unpack(fcntl.fcntl(file, fcntl.F_GETLK, form.pack(fcntl.F_RDLCK, 0, 0, 0, 0)))
    print("free" if answer[0] == fcntl.F_UNLCK else "held", answer[4])
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the kernel charges a container, MiB; of the kernel's own counters."""

    usage: float  # everything: process, page cache, kernel memory (inotify watches, dentries, inodes)
    highest: float  # the most that usage ever was
    process: float  # anonymous memory of its processes
    cache: float  # page cache
    kernel: float  # kernel memory
    refused: int  # times that the limit was hit, which reclaimed page cache or worse


class SidecarPod:
    """The volumes of one pod and its agent."""

    def __init__(self, home: Path, name: str) -> None:
        """Make the volumes with the rights that `fsGroup` gives; nothing runs yet."""
        self.name, self.home = name, home
        self.state, self.own, self.shipped = home / "state", home / "own", home / "shipped"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        home.chmod(0o755)
        for volume in (self.state, self.own, self.shipped):
            volume.mkdir()
            os.chown(volume, 0, GROUP)
            volume.chmod(0o2775)
        self.agent: Container | None = None
        self._url = ""

    def start_agent(
        self,
        limits: Sequence[object] = (),
        settings: Mapping[str, object] | None = None,
        sets: Sequence[str] = (),
    ) -> Container:
        """Start the agent as the chart does: read-only root and state, no capability, numeric user, own volume."""
        address = f"127.0.0.1:{free_port()}"
        self._url = f"http://{address}"
        environment = {
            "POD_NAME": self.name,
            "POD_UID": f"uid-of-{self.name}",
            "STATEWARDEN_LISTEN": address,
            "STATEWARDEN_SHIP_TO": "/shipped",
            "STATEWARDEN_SHIP_CAP_MIB": 16,
            **(settings or {}),
        }
        options: list[object] = [
            "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all", "--security-opt", "no-new-privileges",
            "--user", f"{AGENT_UID}:{AGENT_UID}", "--group-add", GROUP, "--network", "host",
            "-v", f"{self.state}:/state:ro", "-v", f"{self.own}:/var/lib/statewarden", "-v", f"{self.shipped}:/shipped",
            *limits,
        ]  # fmt: skip
        for key, value in environment.items():
            options += ["-e", f"{key}={value}"]
        self.agent = Container(
            f"{self.name}-agent", AGENT, options, ["run", *(x for one in sets for x in ("--set", one))]
        )
        return self.agent

    def wait_ready(self, within_s: float = READY_S) -> float:
        """Wait until the agent watches; gives the seconds since its process began, at most `PROBE_S` too many."""
        assert self.agent is not None
        began_s = int(Path(f"/proc/{self.agent.pid}/stat").read_text().rpartition(")")[2].split()[19])
        self.wait(
            lambda: answered(f"{self._url}/readyz") is not None, "the agent is ready", within_s, PROBE_S
        )
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began_s / os.sysconf("SC_CLK_TCK")

    def wait(
        self, condition: Callable[[], object], what: str, within_s: float = 30.0, poll_s: float = 0.1
    ) -> None:
        """Wait for a condition; raises `ContainerError` if it does not hold in time, or the agent has ended."""
        give_up_s = time.monotonic() + within_s
        while not condition():
            if self.agent is not None and not Path(f"/proc/{self.agent.pid}").exists():
                code = self.agent.exit_code()
                raise ContainerError(
                    f"{self.name}: the agent ended with {code} (137 = killed) before: {what}"
                )
            if time.monotonic() > give_up_s:
                raise ContainerError(f"{self.name}: after {within_s:g} s still not: {what}")
            time.sleep(poll_s)

    def metrics(self) -> dict[str, float]:
        """Scrape once: series as written -> value; empty if nobody answers."""
        return scraped(self._url)

    def metric(self, name: str, **labels: str) -> float | None:
        """Give one series, by a part of its labels; None = there is none."""
        parts = [f'{key}="{value}"' for key, value in labels.items()]
        found = [
            value
            for series, value in self.metrics().items()
            if re.match(rf"{name}(\{{|$)", series) and all(part in series for part in parts)
        ]
        return found[0] if found else None

    def memory(self) -> Memory:
        """Read the kernel's account of the agent's container."""
        assert self.agent is not None
        group = self.agent.cgroup("memory")
        rows = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        stat = {key: int(value) for key, value in rows}
        mib = 1 << 20

        def number(name: str) -> int:
            return int((group / name).read_text())

        return Memory(
            usage=number("memory.usage_in_bytes") / mib,
            highest=number("memory.max_usage_in_bytes") / mib,
            process=stat["rss"] / mib,
            cache=stat["cache"] / mib,
            kernel=number("memory.kmem.usage_in_bytes") / mib,
            refused=number("memory.failcnt"),
        )

    def throttled(self) -> tuple[float, float]:
        """Tell CPU seconds used, and seconds during which the quota kept the agent from running."""
        assert self.agent is not None
        rows = (line.split() for line in (self.agent.cgroup("cpu") / "cpu.stat").read_text().splitlines())
        stat = {key: int(value) for key, value in rows}
        used = int((self.agent.cgroup("cpuacct") / "cpuacct.usage").read_text())
        return used / 1e9, stat["throttled_time"] / 1e9

    def query_locks(self, paths: Sequence[str], *options: object) -> list[tuple[str, int]]:
        """Ask for locks from a fresh container of the agent's image: state and holder's process id, per path."""
        python = "/opt/statewarden/bin/python"
        answer = podman(
            "run", "--rm", "--read-only", "--cap-drop", "all", "--user", f"{AGENT_UID}:{AGENT_UID}",
            "--group-add", GROUP, "-v", f"{self.state}:/state:ro", "--entrypoint", python,
            *options, AGENT, "-c", _LOCK_QUERY, *paths,
        )  # fmt: skip
        return [(line.split()[0], int(line.split()[1])) for line in answer.splitlines()]

    def close(self) -> None:
        """End the agent and remove the volumes."""
        if self.agent is not None:
            self.agent.remove()
        shutil.rmtree(self.home, ignore_errors=True)


def java_command(name: str, home: Path, state: Path, mounts: Sequence[Path]) -> list[str]:
    """Spell `podman run` for a JVM in a container: its own namespaces, the application's user.

    Every directory is mounted under its own path; of `mounts` (JVM, jars, classes) nothing can be written.
    """
    java = Path(shutil.which("java") or "/usr/bin/java").resolve()
    # Debian keeps the JVM's settings in /etc and links to them
    read_only = [java.parents[1], *Path("/etc").glob("java-*-openjdk"), *mounts]
    volumes = [f"{home}:{home}", f"{state}:{state}", *(f"{one}:{one}:ro" for one in read_only)]
    options = [part for volume in volumes for part in ("-v", volume)]
    return [
        "podman", "run", "-i", "--rm", "--name", name, "--network", "host", "--umask", "0027",
        "--user", f"{APPLICATION_UID}:{GROUP}", "--cap-drop", "all", *options, "--entrypoint", str(java), BASE,
    ]  # fmt: skip
