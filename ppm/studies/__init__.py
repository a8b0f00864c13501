"""Studies that run the mechanism many times: settings, releases, starting points."""

from ppm._validation import lazily

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "sweep": "ppm.studies.risk_utility",
    "Sweep": "ppm.studies.sweep_results",
    "SweepEntry": "ppm.studies.sweep_results",
    "match_local_bound": "ppm.studies.scalar_search",
    "compare_starts": "ppm.studies.starting_points",
}

__all__ = [*_EXPORTS]
__getattr__, __dir__ = lazily(globals(), _EXPORTS)
