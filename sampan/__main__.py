"""``python -m sampan`` is the command ``sampan``."""

import sys

from sampan.cli import main

sys.exit(main())
