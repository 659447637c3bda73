"""`python -m xenoglot` is the command line."""

import sys

from xenoglot.cli import main

if __name__ == "__main__":
    sys.exit(main())
