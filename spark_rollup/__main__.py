"""Run the command line as `python -m spark_rollup`."""

from spark_rollup.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
