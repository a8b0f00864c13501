"""The Bayesian pseudo posterior mechanism of Savitsky, Williams and Hu (JMLR 2022).

Every public name is reached as ``ppm.name`` and loaded when first used, so that ``import ppm``
needs no PyMC, matplotlib or notebook machinery.
"""

from importlib import import_module

__version__ = "0.1.0"

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "record_bounds": "ppm.lipschitz",
    "local_bound": "ppm.lipschitz",
    "record_oscillations": "ppm.lipschitz",
    "oscillation_bound": "ppm.lipschitz",
    "tail_bound": "ppm.lipschitz",
    "TailBound": "ppm.lipschitz",
    "bound_by_draws": "ppm.lipschitz",
    "draw_maxima": "ppm.lipschitz",
    "record_weights": "ppm.weights",
    "mapped_weights": "ppm.weights",
    "scalar_weights": "ppm.weights",
    "count_weights": "ppm.weights",
    "radius_effect": "ppm.weights",
    "record_determined_weights": "ppm.weights",
    "reciprocal_map": "ppm.weights",
    "capped_map": "ppm.weights",
    "linear_map": "ppm.weights",
    "threshold_map": "ppm.weights",
    "epsilon": "ppm.pdp",
    "exceedance": "ppm.pdp",
    "loss_exceedance": "ppm.pdp",
    "global_bound": "ppm.pdp",
    "Exceedance": "ppm.pdp",
    "GlobalBound": "ppm.pdp",
    "belief_limits": "ppm.disclosure",
    "detection_limit": "ppm.disclosure",
    "output_table": "ppm.disclosure",
    "release_statement": "ppm.disclosure",
    "Synthesizer": "ppm.synthesizers.base",
    "GammaPoisson": "ppm.synthesizers.gamma_poisson",
    "FiniteMixture": "ppm.synthesizers.finite_mixture",
    "PyMCSynthesizer": "ppm.synthesizers.pymc_models",
    "PyMCGammaPoisson": "ppm.synthesizers.pymc_models",
    "PyMCFiniteMixture": "ppm.synthesizers.pymc_models",
    "PseudoPosteriorMechanism": "ppm.mechanism",
    "MechanismResult": "ppm.mechanism",
    "bound_fit": "ppm.mechanism",
    "match_local_bound": "ppm.mechanism",
    "risk_utility_sweep": "ppm.sweep",
    "Sweep": "ppm.sweep",
    "compare_starts": "ppm.starts",
    "fits_folder": "ppm.fits",
    "bound_diagnostics": "ppm.diagnostics",
    "BoundDiagnostics": "ppm.diagnostics",
    "ChainsDisagreeError": "ppm.diagnostics",
    "contraction_study": "ppm.contraction",
    "ContractionStudy": "ppm.contraction",
    "exact_audit": "ppm.audit",
    "audit_study": "ppm.audit",
    "AuditStudy": "ppm.audit",
    "losses_at": "ppm.audit",
    "bounds_by_unit": "ppm.audit",
    "sampled_audit": "ppm.evidence",
    "SampledAudit": "ppm.evidence",
    "loss_lower_bound": "ppm.evidence",
    "membership_test": "ppm.evidence",
    "LossEvidence": "ppm.evidence",
    "resample": "ppm.utility",
    "resampled_barycentre": "ppm.utility",
    "grouped_barycentres": "ppm.utility",
    "compare_distributions": "ppm.utility",
    "propensity_score": "ppm.utility",
    "PropensityScore": "ppm.utility",
    "rank_powers": "ppm.utility",
    "gini": "ppm.utility",
    "wasserstein_barycentre": "ppm.utility",
    "identification_risks": "ppm.risk",
    "match_risk": "ppm.risk",
    "match_risks": "ppm.risk",
    "load_ce": "ppm.data",
    "simulate_ce": "ppm.data",
    "download_ce": "ppm.data",
    "log_income": "ppm.data",
    "left_out_columns": "ppm.data",
    "DataFileError": "ppm.data",
    "predictor_matrix": "ppm.data",
    "ConsumerExpenditure": "ppm.data",
    "settings_study": "ppm.open_settings",
    "SettingsStudy": "ppm.open_settings",
    "transformed_income": "ppm.open_settings",
    "check_parameters": "ppm.parameters",
    "save_table": "ppm.results",
    "show_table": "ppm.results",
    "save_values": "ppm.results",
    "contraction_values": "ppm.ledger_values",
    "application_values": "ppm.ledger_values",
}
_SUBMODULES = ("plots", "notebooks", "parameters")

__all__ = [*_EXPORTS, *_SUBMODULES]


def __getattr__(name):
    if name in _EXPORTS:
        from ppm._extras import needed_for

        with needed_for(f"ppm.{name}"):
            value = getattr(import_module(_EXPORTS[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"ppm.{name}")
    else:
        raise AttributeError(f"module 'ppm' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
