"""What `statewarden verify` prints, read back from a page and printed again by the real words."""

from __future__ import annotations

import re
from pathlib import Path

from agent.verify.compare import Example
from agent.verify.kinds import Kind
from agent.verify.places import Store
from agent.verify.report import key_text, paragraph
from agent.verify.rule import Word
from agent.verify.verify import Result

VERDICT = re.compile(
    r"(?P<word>\w[\w-]*) +(?P<application>\S+)/(?P<task>\d+_\d+)/(?P<store>\S+)  "
    r"\((?P<kind>[\w-]+); (?P<topic>\S+)-\d+ from (?P<start>\d+) to (?P<end>\d+); offset (?P<offset>\d+)\)$",
    re.MULTILINE,
)
_COUNT = re.compile(r"(\d+) (?:keys |values )?([\w-]+)(?:, |$)")
_EXAMPLE = re.compile(
    r" +(?P<word>[\w-]+): key (?P<key>[0-9a-f]{16}); "
    r"(?:no record is due|the changelog has it at offset (?P<offset>\d+))(?:; (?P<note>.*))?$"
)


def printed_again(text: str) -> str:
    """Print what a page shows as the program does.

    Args:
        text: Any number of stores, each with its counts and perhaps examples.
    """
    done = ""
    for part in re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]:
        head, counts, *examples = part.splitlines()
        found = VERDICT.match(head)
        assert found is not None, head
        result = Result(
            Store(found["application"], found["task"], found["store"], Path(), database=Path()),
            Word(found["word"].lower()),
            topic=found["topic"], kind=Kind(found["kind"]), offsets={0: int(found["offset"])},
            start=int(found["start"]), end=int(found["end"]), is_closed=True,
        )  # fmt: skip
        result.tally.counts.update(
            {Word(word): int(number) for number, word in _COUNT.findall(counts.strip())}
        )
        keys: list[str] = []
        notes: dict[int, str] = {}
        for number, line in enumerate(examples):
            one = _EXAMPLE.match(line)
            assert one is not None, line
            offset = None if one["offset"] is None else int(one["offset"])
            result.tally.examples.append(Example(Word(one["word"]), b"", offset, None))
            notes |= {number: one["note"]} if one["note"] else {}
            keys.append(one["key"])
        said = paragraph(result, notes, show_keys=False)
        for key in keys:
            said = said.replace(key_text(b"", show_keys=False), f"key {key}", 1)
        done += said
    return done
