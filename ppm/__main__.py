"""``python -m ppm`` is the command line ``ppm``."""

from ppm.publishing.command_line import main

raise SystemExit(main())
