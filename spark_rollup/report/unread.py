"""Lines of another major version of the contract, and files cut off: with one of them nothing is an all-clear."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent.contract.wording import named


def in_words(lines: Mapping[str, int], namespace: str | None = None, files: Collection[str] = ()) -> str:
    """Say as part of a verdict how many lines wait for an upgrade, and which files to send again; empty: none.

    `lines`: their number by `namespace/pod`; empty = no pod was named. `namespace`: None = all; may have its cluster.
    `files`: those that keep the end of what an agent said; none of them names a namespace.
    """
    space = None if namespace is None else namespace.rpartition("/")[2] or "-"
    here = {pod: n for pod, n in sorted(lines.items()) if not pod or space in (None, pod.partition("/")[0])}
    number, pods = sum(here.values()), named([pod for pod in here if pod])
    of = f" of {pods}" if pods else ""
    what = f"1 line{of} is" if number == 1 else f"{number} lines{of} are"
    waiting = f"{what} of an unknown contract version: upgrade statewarden-rollup" if number else ""
    names = named(["/".join(path.split("/")[-2:]) for path in files])
    cut = f"{names} could not be read to the end: make readable, or send again" if files else ""
    return "; ".join(filter(None, (waiting, cut)))
