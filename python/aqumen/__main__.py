"""`python -m aqumen` is `aqumen`."""

import sys

from aqumen.cli import main

sys.exit(main())
