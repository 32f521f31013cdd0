"""What rocksdict needs for the same facts; runs in an interpreter that has it, on copies: it writes where it opens.

Prints one JSON object: CPU seconds for all databases, and the entries that it found in all of them.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from rocksdict import AccessType, Options, Rdict  # not in the project's own set


def count_entries(path: str) -> int:
    """Open a database read-only, and read its `offsets` family."""
    names = Rdict.list_cf(path, Options(raw_mode=True))
    families = {name: Options(raw_mode=True) for name in names}
    options = Options(raw_mode=True)
    database = Rdict(path, options, column_families=families, access_type=AccessType.read_only())
    entries = len(dict(database.get_column_family("offsets").items()))
    database.close()
    return entries


if __name__ == "__main__":
    began_s = time.process_time()
    found = sum(count_entries(str(path)) for path in sorted(Path(sys.argv[1]).iterdir()))
    print(json.dumps({"cpu_s": time.process_time() - began_s, "entries": found}))
