"""Which browser the tests look with."""

import shutil

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "msedge",
)
# path of a Chromium or a relative of it, or None
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
