"""What a release needs beyond the paper: a plan, noise on counts and sums, an account, and words.

:class:`ReleasePlan` is made in public and applied to a table once, by one of the mechanisms. What
else is here is reached by its file, such as ``ppm.release.measure.release_errors``.
"""

from ppm.release import measure  # noqa: F401
from ppm.release.account import Account
from ppm.release.bins import Bins
from ppm.release.limits import limits_and_weight, place_limits
from ppm.release.margins import Margins
from ppm.release.means import Means
from ppm.release.mechanisms import Mechanism, Published
from ppm.release.noise import NoisyRelease
from ppm.release.plan import Confidential, Release, ReleasePlan
from ppm.release.posterior import Posterior
from ppm.release.rehearsal import Rehearsal
from ppm.release.statement import Guarantee, guarantee, release_statement

__all__ = [
    "Account",
    "Bins",
    "Confidential",
    "Guarantee",
    "Margins",
    "Means",
    "Mechanism",
    "NoisyRelease",
    "Posterior",
    "Published",
    "Rehearsal",
    "Release",
    "ReleasePlan",
    "guarantee",
    "limits_and_weight",
    "place_limits",
    "release_statement",
]
