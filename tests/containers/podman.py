"""Containers without a daemon: settings, a base root made by debootstrap, our images built on it, containers on those.

Everything heavy is kept below `~/.cache/statewarden/images` and not made again. Needs root and the Debian packages
podman, buildah, runc, catatonit, debootstrap. The settings are those without which a sandbox that has no
CAP_SYS_RESOURCE and cgroups of version 1 cannot run a container.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path.home() / ".cache" / "statewarden" / "images"
TOOLS = ("podman", "buildah", "runc", "debootstrap")
BASE, BUILD_BASE = "localhost/statewarden-base", "localhost/statewarden-build-base"
AGENT, ROLLUP = "localhost/statewarden-agent", "localhost/statewarden-rollup"
SUITE = "bookworm"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"

_CONTAINERS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
netns = "none"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{cache}/graph"
runroot = "{cache}/run"
"""
_WITH_PIP = """\
FROM {base}
COPY pip-*.whl /tmp/
RUN python3 -m zipfile -e /tmp/pip-*.whl /usr/lib/python3/dist-packages && rm /tmp/pip-*.whl
"""


class ContainerError(Exception):
    """A tool is missing, or did not do what it was asked to."""


def missing_tools() -> str:
    """Name what has to be installed; empty = nothing."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0:
        missing.append("root")
    return ", ".join(missing)


def podman(
    *arguments: object, tool: str = "podman", timeout_s: float = 600, expected: Sequence[int] = (0,)
) -> str:
    """Run podman (or buildah) and give what it printed; raises `ContainerError` with its last words."""
    command = [tool, *map(str, arguments)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=timeout_s, check=False, cwd=ROOT
    )
    if done.returncode not in expected:
        raise ContainerError(f"{' '.join(command[:3])}: {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout.strip()


def quietly(*arguments: object) -> None:
    """Run podman, whatever comes of it."""
    command = ["podman", *map(str, arguments)]
    subprocess.run(command, env=environment(), capture_output=True, check=False)


def environment() -> dict[str, str]:
    """Make the environment in which podman and buildah find our settings."""
    CACHE.mkdir(parents=True, exist_ok=True)
    for name, text in (("containers.conf", _CONTAINERS), ("storage.conf", _STORAGE.format(cache=CACHE))):
        file = CACHE / name
        if not file.is_file() or file.read_text() != text:  # a second run beside this one may be reading it
            file.write_text(text)
    own = {"CONTAINERS_CONF": "containers.conf", "CONTAINERS_STORAGE_CONF": "storage.conf"}
    return os.environ | {name: str(CACHE / file) for name, file in own.items()}


def has_image(name: str) -> bool:
    done = subprocess.run(["podman", "image", "exists", name], env=environment(), check=False)
    return done.returncode == 0


def make_bases() -> None:
    """Make the two bases: a Debian with Python and nothing else, and the same with pip for the build."""
    if not has_image(BASE):
        root = CACHE / "base"
        if not (root / "complete").is_file():
            _bootstrap(root)
        archive = subprocess.Popen(
            ["tar", "-C", str(root), "--exclude=./complete", "-c", "."], stdout=subprocess.PIPE
        )
        subprocess.run(
            ["podman", "import", "-q", "-", BASE], env=environment(), stdin=archive.stdout, check=True,
            capture_output=True,
        )  # fmt: skip
        archive.wait()
    if not has_image(BUILD_BASE):
        context = CACHE / "pip"
        context.mkdir(exist_ok=True)
        subprocess.run(
            ["python3", "-m", "pip", "download", "-q", "--no-deps", "-d", str(context), "pip"], check=True
        )
        (context / "Containerfile").write_text(_WITH_PIP.format(base=BASE))
        podman("build", "--isolation", "chroot", "-q", "-t", BUILD_BASE, context, tool="buildah")


def make_image(name: str, *mounts: str) -> str:
    """Build an image of ours from this checkout; layers that did not change are not built again. Gives its name.

    The rollup's takes minutes and 2 GB the first time. `mounts`: what the build may read beside the checkout.
    """
    make_bases()
    recipe = ROOT / "deploy" / "images" / f"{name.rpartition('-')[2]}.Containerfile"
    # the machine's own certificates: behind an inspecting proxy the base's would not do
    volumes = [part for mount in (f"{CERTIFICATES}:{CERTIFICATES}:ro", *mounts) for part in ("-v", mount)]
    podman(
        "build", "--isolation", "chroot", "--layers", "-q", "-f", recipe, "--build-arg", f"BASE={BASE}",
        "--build-arg", f"BUILD_BASE={BUILD_BASE}", *volumes, "-t", name, ROOT, tool="buildah", timeout_s=3000,
    )  # fmt: skip
    return name


def size_bytes(image: str) -> int:
    """Tell the size of an image, all layers unpacked."""
    return int(json.loads(podman("image", "inspect", image))[0]["Size"])


@contextmanager
def mounted(image: str) -> Iterator[Path]:
    """Give an image's root as a directory, which is not to be written to."""
    path = Path(podman("image", "mount", image))
    try:
        yield path
    finally:
        quietly("image", "unmount", image)


class Container:
    """A container that was started and is removed in the end."""

    def __init__(self, name: str, image: str, options: Sequence[object], command: Sequence[object]) -> None:
        self.name = name
        subprocess.run(
            ["podman", "rm", "-f", "-i", name], env=environment(), capture_output=True, check=False
        )
        podman("run", "-d", "--name", name, *options, image, *command)
        self.pid = int(podman("inspect", "-f", "{{.State.Pid}}", name))

    def stop(self, wait_s: int = 30) -> int:
        """Send its stop signal, wait, and give its exit code; 137 = it had to be killed, or its memory was used up."""
        podman("stop", "-t", wait_s, self.name)
        return self.exit_code()

    def exit_code(self) -> int:
        """Wait for its end and give its exit code."""
        return int(podman("wait", self.name))

    def remove(self) -> None:
        """End it at once and take it away; harmless if it is gone."""
        quietly("rm", "-f", "-i", "-t", "0", self.name)

    def cgroup(self, controller: str) -> Path:
        """Give its directory of one controller (cgroups of version 1); the process must be alive."""
        for line in Path(f"/proc/{self.pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return Path("/sys/fs/cgroup") / controller / path.lstrip("/")
        raise ContainerError(f"{self.name}: no cgroup of {controller}")


def _bootstrap(root: Path) -> None:
    """Make a Debian root with Python, without byte code, as the official slim images are."""
    shutil.rmtree(root, ignore_errors=True)
    site = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", f"Codename: {SUITE}"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    include = "python3-minimal,libpython3-stdlib,ca-certificates"
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={include}", SUITE, str(root), site[0]],
        check=True, capture_output=True, timeout=900,
    )  # fmt: skip
    for waste in (
        "var/cache/apt/archives",
        "var/lib/apt/lists",
        "usr/share/man",
        "usr/share/locale",
    ):
        shutil.rmtree(root / waste, ignore_errors=True)
    for folder in (root / "usr" / "share" / "doc").iterdir():
        for path in () if folder.is_symlink() else list(folder.iterdir()):
            if path.name != "copyright":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for cache in list((root / "usr" / "lib" / "python3.11").rglob("__pycache__")):
        shutil.rmtree(cache)
    (root / "complete").touch()
