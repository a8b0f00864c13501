"""What a release needs beyond the paper: a plan, noise on counts and sums, an account, and words.

:class:`ReleasePlan` is made in public and applied to a table once, by one of the mechanisms. What
else is here is reached by its file, such as ``ppm.release.histogram.histogram_release`` or
``ppm.release.measure.release_errors``.
"""

from ppm.release import histogram, measure, raking, sums  # noqa: F401
from ppm.release.account import Account
from ppm.release.limits import limits_and_weight, place_limits
from ppm.release.mechanisms import Bins, Margins, Mechanism, Posterior, Published, Sums
from ppm.release.noise import NoisyRelease
from ppm.release.plan import Confidential, Release, ReleasePlan
from ppm.release.rehearsal import Rehearsal
from ppm.release.statement import Guarantee, guarantee, release_statement

__all__ = [
    "Account",
    "Bins",
    "Confidential",
    "Guarantee",
    "Margins",
    "Mechanism",
    "NoisyRelease",
    "Posterior",
    "Published",
    "Rehearsal",
    "Release",
    "ReleasePlan",
    "Sums",
    "guarantee",
    "limits_and_weight",
    "place_limits",
    "release_statement",
]
