"""``python -m ppm`` is the command line ``ppm``."""

import sys

try:
    from ppm.publishing.command_line import main
except KeyboardInterrupt:
    # so soon that the library was not read yet
    print("ppm: interrupted", file=sys.stderr)
    raise SystemExit(130) from None

raise SystemExit(main())
