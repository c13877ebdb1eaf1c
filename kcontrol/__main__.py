"""Starts the command line: `kcontrol`, or `python -m kcontrol`."""

import sys

from kcontrol import __version__


def main() -> int:
    """Run the command line; if a package is missing, print one sentence with the version, and return 1."""
    try:
        from kcontrol import cli

        return cli.main()
    except ModuleNotFoundError as problem:
        if (problem.name or "kcontrol").startswith("kcontrol"):
            raise
        remedy = "delete .venv and run ./run lab, or pip install kcontrol again"
        print(f"kcontrol {__version__}: The package {problem.name} is missing: {remedy}.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
