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
    from agent.contract.exit_codes import Exit

    try:
        from agent.cli import main as command  # takes a while

        return command()
    except Exception:  # noqa: BLE001 - the fence of the program: Python's own 1 would say that something was found
        sys.excepthook(*sys.exc_info())
        return Exit.BROKE


if __name__ == "__main__":
    sys.exit(main())
