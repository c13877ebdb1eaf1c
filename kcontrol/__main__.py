"""Runs the command line of kcontrol for `python -m kcontrol`."""

import sys

from kcontrol.cli import main

if __name__ == "__main__":
    sys.exit(main())
