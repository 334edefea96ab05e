"""`python -m needle_course` is `needle-course`."""

import sys

from .cli import main

sys.exit(main())
