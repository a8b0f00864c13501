"""``python -m ppm`` is the command line ``ppm``."""

from ppm.cli import main

raise SystemExit(main())
