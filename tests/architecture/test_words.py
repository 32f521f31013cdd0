"""Words that the glossary replaces are found wherever people read them, and excused only with a reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.words import Rules, check, load_rules

BAD = '''"""Tell what nobody said."""

X = "was made anew"  # somebody mends it


def look() -> str:
    """Say it again."""
    return f"the agent stood still for {X}"


class TaskLook:
    """Fine: it looks like a task, and looks up its name."""

    x: int = 0
    """It lies here."""

    def count(self, told: int) -> None:
        """Count."""
        self.begun = told
'''

RULES = """
files = ["**/*.py", "*.md"]

[[word]]
words = "anew"
instead = "again"

[[word]]
words = "nobody"
instead = "no process"
"""


def rules_of(folder: Path, text: str) -> Rules:
    """Load rules from a text."""
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return load_rules(path)


def test_the_repository_uses_no_word_that_is_not_excused(repository: Path) -> None:
    """What `make lint` asks, and goes by its exit code."""
    done = subprocess.run(
        [sys.executable, repository / "tools/words.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_of_tests_only_their_names_are_read(repository: Path, tmp_path: Path) -> None:
    """What a test says and the helpers beside it may use any word."""
    (tmp_path / "tests").mkdir()
    text = '"""Tell it anew."""\n\n\ndef look():\n    ...\n\n\ndef test_it_is_told():\n    """Nobody."""\n'
    (tmp_path / "tests/test_bad.py").write_text(text, encoding="utf-8")
    rules = load_rules(repository / "tools/words.toml")
    (wrong,) = check(tmp_path, Rules(rules.words, (), rules.files, rules.tests))
    assert wrong.startswith("tests/test_bad.py:8: name: 'told': ")


def test_every_kind_of_text_is_read(repository: Path, tmp_path: Path) -> None:
    """Strings, docstrings, comments, names and pages: each word with its line, and what to write instead."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/bad.py").write_text(BAD, encoding="utf-8")
    (tmp_path / "README.md").write_text("Fine.\n\nLooked at\nagain for ever.\n", encoding="utf-8")
    rules = load_rules(repository / "tools/words.toml")
    wrong = check(tmp_path, Rules(rules.words, (), rules.files))
    assert sorted(line.split("': ", 1)[0] + "'" for line in wrong) == [
        "README.md:3: page: 'Looked'",
        "README.md:4: page: 'for ever'",
        "agent/bad.py:11: name: 'Look'",
        "agent/bad.py:15: docstring: 'lies'",
        "agent/bad.py:17: name: 'told'",
        "agent/bad.py:19: name: 'begun'",
        "agent/bad.py:1: docstring: 'Tell'",
        "agent/bad.py:1: docstring: 'nobody'",
        "agent/bad.py:3: comment: 'mends'",
        "agent/bad.py:3: comment: 'somebody'",
        "agent/bad.py:3: string: 'anew'",
        "agent/bad.py:6: name: 'look'",
        "agent/bad.py:8: string: 'stood'",
    ]
    assert all(line.split("': ", 1)[1] for line in wrong)


@pytest.mark.parametrize(
    ("exception", "left"),
    [
        ('paths = ["bad.py"]', []),
        ('paths = ["bad.py"]\ntext = ["Anew"]', ["nobody"]),
        ('paths = ["bad.py"]\nkinds = ["comment"]', ["anew"]),
        ('paths = ["other.py"]', ["anew", "nobody", "excuses nothing"]),
    ],
)
def test_an_exception_excuses_what_it_names(tmp_path: Path, exception: str, left: list[str]) -> None:
    """By path, kind of text and word; one that excuses nothing is wrong itself."""
    (tmp_path / "bad.py").write_text('X = "anew"  # nobody\n', encoding="utf-8")
    wrong = check(tmp_path, rules_of(tmp_path, f'{RULES}\n[[exception]]\n{exception}\nreason = "quoted"\n'))
    assert len(wrong) == len(left)
    assert all(word in line for word, line in zip(left, wrong, strict=True))


@pytest.mark.parametrize("fields", ['reason = ""', 'reason = "quoted"\nkinds = ["poem"]'])
def test_an_exception_needs_a_reason_and_known_kinds(tmp_path: Path, fields: str) -> None:
    """Otherwise the rules cannot be used."""
    with pytest.raises(ValueError, match="needs a reason and kinds of"):
        rules_of(tmp_path, f'{RULES}\n[[exception]]\npaths = ["bad.py"]\n{fields}\n')
