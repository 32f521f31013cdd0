"""`python -m agent`: hands over to the command."""

import sys

from agent.cli import main

if __name__ == "__main__":
    sys.exit(main())
