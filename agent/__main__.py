"""`statewarden` and `python -m agent`: from the first moment an interrupt has its exit code, imports included."""

import sys

from agent.interrupt import guarded


def main() -> int:
    """Run the command line of this process.

    Returns:
        Exit code.
    """
    return guarded(_command, is_all=True)


def _command() -> int:
    from agent.cli import main as command  # takes a while

    return command()


if __name__ == "__main__":
    sys.exit(main())
