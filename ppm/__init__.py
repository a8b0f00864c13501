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
    "FiniteMixture": "ppm.synthesizers.mixture.model",
    "PyMCSynthesizer": "ppm.synthesizers.pymc_model",
    "PyMCGammaPoisson": "ppm.synthesizers.pymc_model",
    "PyMCFiniteMixture": "ppm.synthesizers.pymc_model",
    "PseudoPosteriorMechanism": "ppm.mechanism",
    "MechanismResult": "ppm.mechanism",
    "bound_fit": "ppm.mechanism",
    "match_local_bound": "ppm.mechanism",
    "risk_utility_sweep": "ppm.studies.sweep",
    "Sweep": "ppm.studies.sweep",
    "compare_starts": "ppm.studies.starts",
    "fits_folder": "ppm.studies.kept_fits",
    "bound_diagnostics": "ppm.diagnostics",
    "BoundDiagnostics": "ppm.diagnostics",
    "ChainsDisagreeError": "ppm.diagnostics",
    "contraction_study": "ppm.studies.contraction",
    "ContractionStudy": "ppm.studies.contraction",
    "exact_audit": "ppm.audits.exact",
    "audit_study": "ppm.audits.exact",
    "AuditStudy": "ppm.audits.exact",
    "losses_at": "ppm.audits.exact",
    "bounds_by_unit": "ppm.audits.exact",
    "sampled_audit": "ppm.audits.sampled",
    "SampledAudit": "ppm.audits.sampled",
    "loss_lower_bound": "ppm.audits.sampled",
    "membership_test": "ppm.audits.sampled",
    "LossEvidence": "ppm.audits.sampled",
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
    "load_ce": "ppm.survey.expenditure",
    "simulate_ce": "ppm.survey.expenditure",
    "download_ce": "ppm.survey.expenditure",
    "log_income": "ppm.survey.expenditure",
    "left_out_columns": "ppm.survey.expenditure",
    "DataFileError": "ppm.survey.expenditure",
    "predictor_matrix": "ppm.survey.expenditure",
    "ConsumerExpenditure": "ppm.survey.expenditure",
    "settings_study": "ppm.studies.settings",
    "SettingsStudy": "ppm.studies.settings",
    "transformed_income": "ppm.studies.settings",
    "check_parameters": "ppm.publishing.parameters",
    "save_table": "ppm.publishing.results",
    "show_table": "ppm.publishing.results",
    "save_values": "ppm.publishing.results",
    "contraction_values": "ppm.publishing.ledger_values",
    "application_values": "ppm.publishing.ledger_values",
}
_SUBMODULES = ("plots",)

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
