"""Print what rocksdict finds in databases, one JSON object per line.

Runs in an interpreter of its own (`toolbox.rocksdict_python`). Give it copies: it writes into what it opens.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rocksdict import AccessType, Options, Rdict  # not in the project's own set


def look(path: str) -> dict[str, object]:
    """Open a database read-only and list families, files and entries."""
    names = Rdict.list_cf(path, Options(raw_mode=True))
    database = Rdict(
        path,
        Options(raw_mode=True),
        column_families={name: Options(raw_mode=True) for name in names},
        access_type=AccessType.read_only(),
    )
    files = [
        [int(Path(one["name"]).stem), one["level"], one["size"], one["num_entries"], one["num_deletions"]]
        for one in database.live_files()
    ]
    families = {name: dict(database.get_column_family(name).items()) for name in names}
    offsets = {key.hex(): value.hex() for key, value in families.get("offsets", {}).items()}
    counts = {name: len(items) for name, items in families.items()}
    return {"files": sorted(files), "counts": counts, "offsets": offsets}


def main(paths: list[str]) -> None:
    """Look at each; an error is an answer, too."""
    for path in paths:
        try:
            answer = look(path)
        except Exception as error:  # noqa: BLE001 - rocksdict raises nothing narrower
            answer = {"error": str(error)}
        print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
