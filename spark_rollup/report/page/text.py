"""Text for the page: names that the disk held, times, numbers, addresses, and what folds."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from agent.contract.codec import FIRST_US, LAST_US
from agent.contract.markup import escape, plural
from spark_rollup.report.story import some

CLIP = 2000  # longer texts are cut: agents' words are free text
NAMED = 12  # so many names a line has; of more it gives the number
OPEN_AT_ONCE = 25  # so many blocks of one kind are shown at once, the others in folded pages of this size
NAMES_OF_ONE = 200  # tasks, pods and agents' incidents that one incident names; of more it gives the number

_PLAIN = re.compile(r"i-[A-Za-z0-9._-]{1,78}")
"""Any other text may break the page, or be the address of something else on it."""


def clip(value: object, limit: int = CLIP) -> str:
    """Make a text safe, and cut it where it is longer than a page has room for."""
    text = "" if value is None else str(value)
    left = len(text) - limit
    return f"{escape(text[:limit])} &hellip; ({left} characters more)" if left > 0 else escape(text)


def code(value: object) -> str:
    """Write a word of a program."""
    return f"<code>{clip(value, 100)}</code>"


def name(value: object) -> str:
    """Write a name from disk so that its text direction cannot disturb its surroundings."""
    return f"<bdi>{clip(value, 300)}</bdi>"


def named(values: Iterable[object], limit: int = NAMED) -> str:
    """List names for a line of text."""
    return some([name(value) for value in values], limit)


def clock(at_us: int, *, millis: bool = False) -> str:
    """Write the time of day, UTC."""
    text = _utc(at_us).strftime("%H:%M:%S")
    return f"{text}.{at_us % 1_000_000 // 1000:03d}" if millis else text


def moment(at_us: int) -> str:
    """Write date and time as an element that machines can read."""
    exact = _utc(at_us).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f'<time datetime="{exact}">{day(at_us)} {clock(at_us)} UTC</time>'


def day(at_us: int) -> str:
    """Write the date, UTC."""
    return _utc(at_us).date().isoformat()


def _utc(at_us: int) -> datetime:
    return datetime.fromtimestamp(min(max(at_us, FIRST_US), LAST_US) // 1_000_000, UTC)


def percent(share: float) -> str:
    """Write a share; only all of it is 100 %."""
    text = f"{share * 100:.1f}"
    return "100\u202f%" if text == "100.0" and share >= 1 else f"{min(float(text), 99.9):.1f}\u202f%"


def fitting(blocks: Iterable[str], limit_bytes: int) -> list[str]:
    """Take blocks from the front as long as all of them together fit; no further block is made."""
    taken, size = [], 0
    for block in blocks:
        size += len(block.encode())
        if size > limit_bytes:
            break
        taken.append(block)
    return taken


def paged(blocks: Sequence[str], noun: str, size: int = OPEN_AT_ONCE, around: str = "{}") -> str:
    """Fold all behind the first page, so that thousands open as fast as a few; `around` holds the blocks of a page."""
    parts = [around.format("".join(blocks[:size]))]
    for start in range(size, len(blocks), size):
        page = blocks[start : start + size]
        head = f"{noun} {start + 1} to {start + len(page)} of {len(blocks)}"
        parts.append(fold(head, around.format("".join(page))))
    return "".join(parts)


def fold(head: str, body: str, kind: str = "page") -> str:
    """Hide something behind one line."""
    return f'<details class="{kind}"><summary>{head}</summary>{body}</details>'


def rest(left: int, noun: str, where: str) -> str:
    """Count what is not on the page, and say where all of it is; empty: nothing is left out."""
    return f'<p class="lead rest">Not on this page: {plural(left, noun)} more{where}</p>' if left > 0 else ""


def section(id_: str, title: str, lead: str, body: str = "") -> str:
    """Make a section of the page."""
    words = f'<p class="lead">{lead}</p>' if lead else ""
    return f'<section aria-labelledby="{id_}"><h2 id="{id_}">{title}</h2>{words}{body}</section>'


def dotted(*parts: str) -> str:
    """Put what there is to say into one line."""
    return " &middot; ".join(filter(None, parts))


def meta(words: str) -> str:
    """Say something beside the point; empty: nothing."""
    return f'<p class="meta">{words}</p>' if words else ""


def natural(key: Sequence[str]) -> list[tuple[int, int, str]]:
    """Order names as people count: `0_2` before `0_10`."""
    parts = re.split(r"([0-9]{1,18})", "/".join(key))
    return [(0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part) for part in parts]


def local_id(id_: str) -> str:
    """Turn an incident's id into an address."""
    return escape(id_) if _PLAIN.fullmatch(id_) else anchor("i", id_)


def anchor(kind: str, value: object) -> str:
    """Make an address that no name from disk can break: of an incident (i), a timeline (t), a restart (r)."""
    return f"{kind}-{hashlib.sha256(repr(value).encode()).hexdigest()[:16]}"


def place(row: Mapping[str, object]) -> str:
    """Name the task, store and pod that a row is about."""
    about = row["task_id"] or row["application_id"]
    what = name(about) if about else ""
    store = f" / {name(row['store'])}" if row.get("store") else ""
    pod = name(row["pod"]) if row["pod"] else ""
    return f"{what}{store}{' on ' if what and pod else ''}{pod}" or "fleet"


def link(address: str, words: str) -> str:
    """Lead to an address of the page."""
    return f'<a href="#{address}">{words}</a>'


def marks(
    namespace: object, applications: Iterable[object], pods: Iterable[object], severity: object | None = None
) -> str:
    """Write what the filter of the page knows about a block, as attributes.

    Names are separated by line ends, which `escape` leaves in no name. Where there are more pods than it names, the
    filter must not hide the block from any: `data-more` says so.
    """
    known = [pod for pod in dict.fromkeys(pods) if pod]
    lists = (("n", [namespace]), ("a", applications), ("p", known[:NAMES_OF_ONE]))
    words = "".join(
        f' data-{key}="' + "\n".join(clip(x, 300) for x in dict.fromkeys(values) if x) + '"'
        for key, values in lists
    )
    words += " data-more" if len(known) > NAMES_OF_ONE else ""
    return f'{words} data-s="{severity}"' if severity is not None else words
