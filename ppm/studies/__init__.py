"""Studies that run the mechanism many times: contraction, settings, starting points."""

from ppm._validation import lazily

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "contraction": "ppm.studies.contraction_study",
    "ContractionStudy": "ppm.studies.contraction_study",
    "contraction_by_fits": "ppm.studies.fitted_contraction",
    "sweep": "ppm.studies.risk_utility",
    "Sweep": "ppm.studies.sweep_results",
    "SweepEntry": "ppm.studies.sweep_results",
    "match_local_bound": "ppm.studies.scalar_search",
    "sharded_release": "ppm.studies.sharded_releases",
    "ShardedRelease": "ppm.studies.sharded_releases",
    "random_shards": "ppm.studies.sharded_releases",
    "compare_starts": "ppm.studies.starting_points",
    "measure_cost": "ppm.studies.cost_model",
    "fit_cost": "ppm.studies.cost_model",
    "CostFit": "ppm.studies.cost_model",
}

__all__ = [*_EXPORTS]
__getattr__, __dir__ = lazily(globals(), _EXPORTS)
