"""A release that is planned in public: mechanism, ε and rehearsal before the table is opened."""

from ppm.plan.mechanisms import Bins, Margins, Mechanism, Posterior, Published, Sums
from ppm.plan.plan import Confidential, Release, ReleasePlan
from ppm.plan.rehearsal import Rehearsal

__all__ = [
    "Bins",
    "Confidential",
    "Margins",
    "Mechanism",
    "Posterior",
    "Published",
    "Rehearsal",
    "Release",
    "ReleasePlan",
    "Sums",
]
