"""``python -m consilience``."""

import sys

from consilience.cli import main

if __name__ == "__main__":
    sys.exit(main())
