"""`python -m kcontrol` is the command line."""

import sys

from kcontrol.cli import main

if __name__ == "__main__":
    sys.exit(main())
