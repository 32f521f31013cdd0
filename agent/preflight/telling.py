"""What preflight says: results, and which line of which manifest to change. Pure.

Names in the manifest are those of the charts (`helm/`) and of `deploy/manifests`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """What came out of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


RANK = {level: rank for rank, level in enumerate(Level)}  # 0, 1, 2: as the metric has it


@dataclass(frozen=True, slots=True)
class Result:
    """What one check says."""

    check: str
    level: Level  # how bad it is
    what: str  # what was found, one sentence
    where: str = ""  # path, address or kernel setting that it is about; empty = the agent itself
    change: str = ""  # which line of which manifest to change; empty where nothing has to be


def count(results: Iterable[Result]) -> str:
    """Count the results by level."""
    levels = [x.level for x in results]
    return ", ".join(f"{levels.count(level)} {level.value}" for level in Level)


# what to change: lines as wide as their sentences
# fmt: off
_SIDECAR = "StatefulSet, spec.template.spec.initContainers[name=statewarden]"
_POD = "StatefulSet, spec.template.spec.securityContext"

STATE_MOUNT = (f"{_SIDECAR}.volumeMounts: mount the volume that the application's container mounts at its `state.dir`,"
               " readOnly, at the path in env STATEWARDEN_STATE_DIR")
STATE_DIR_ENV = f"{_SIDECAR}.env STATEWARDEN_STATE_DIR"
STATE_DIR_OF_POD = (f"{STATE_DIR_ENV}: the mountPath and $(POD_NAME), as the application's own `state.dir`; where its"
                    " mount has a subPathExpr, the same one on the agent's mount")
LINKED = f"{_SIDECAR}.volumeMounts: mount what the link names as well, and give its parent as the state directory"
STATE_VOLUME = "StatefulSet, spec.volumeClaimTemplates: a persistent volume for `state.dir`"
APPLICATION_STATE_DIR = ("the application's configuration, `state.dir`: set it to the mountPath of the shared volume in"
                         " the application's own container")
NOT_ROOT = f"{_SIDECAR}.securityContext: runAsNonRoot: true, runAsUser: 65532"
UMASK = ("the application's container: start it with umask 0027 (now its directories deny their own group);"
         " existing directories: chmod -R g+rX, once, in the application's container")
ANY_GROUP = (f"{_SIDECAR}.securityContext: runAsGroup as in the application's container; or {_POD}: supplementalGroups"
             " with that gid (fsGroup alone reaches the volume's root only)")
GROUP = f"{_SIDECAR}.securityContext: runAsGroup: {{0}}; or {_POD}: supplementalGroups: [{{0}}]"
"""Not fsGroup: Java sets 0750 on the application's directory, which clears the set-group-id bit, so below it
everything has the group of the application's own process."""
SPOOL_MOUNT = (f"{_SIDECAR}.volumeMounts and spec.template.spec.volumes: an emptyDir with a sizeLimit at the parent of"
               " the path in env STATEWARDEN_SPOOL")
SPOOL_GROUP = f"{_POD}: fsGroup (any number: an emptyDir is made writable for it)"
SPOOL_ENV = f"{_SIDECAR}.env STATEWARDEN_SPOOL"
SPOOL_SIZE = "StatefulSet, spec.template.spec.volumes: the spool's sizeLimit; or env STATEWARDEN_SHIP_CAP_MIB"
SHIP_TO = f"{_SIDECAR}.env STATEWARDEN_SHIP_TO"
NETWORK = f"{SHIP_TO} (or STATEWARDEN_SHIP_ENDPOINT), or the NetworkPolicy's egress rules of the application's pods"
IMAGE_EXTRAS = f"{_SIDECAR}.image: the variant with sinks (tag suffix -sinks)"
NODE_CLOCK = "the node: run chrony, or another time service, that slews the clock"
SYSCTL = "the node (not the pod): sysctl -w {0}={1}, and the same line in /etc/sysctl.d"
