"""The pseudo posterior mechanism: fit, weigh, refit, bound, release (the paper's section 3)."""

import os
import textwrap
import warnings
from dataclasses import dataclass, field, replace

import numpy as np

from ppm import pdp, rules
from ppm.brief import Brief
from ppm.censoring import Censoring
from ppm.checks import check_count, check_flag, check_number, check_weights
from ppm.diagnostics import BoundDiagnostics, ChainsDisagreeError, diagnose
from ppm.disclosure import drawn_in_words, guarantee_of, statement_of
from ppm.scan import LogLikelihoodScan
from ppm.seeds import streams
from ppm.synthesizers.base import Synthesizer, as_synthesizer
from ppm.terms import Terms, as_terms

__all__ = ["Fit", "PseudoPosteriorMechanism", "bound_fit", "fit"]

# if no term moves by more than this share of the width, the limits are in the wrong place
_HARDLY = 0.01


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Fit(Brief):
    """A model, its records' terms, and draws of θ; bounds, ε and releases follow from these.

    What :meth:`synthesize` returns is meant for release, with the statement on it and, if the fit
    is strict, ε and the limits; everything else was computed from the confidential records. Bounds,
    ε and releases raise a :class:`ppm.ChainsDisagreeError` where the chains disagree, stand still
    or diverge often (with limits: at all), unless the fit had ``allow_disagreement=True``;
    :func:`ppm.mechanism.bound_fit` reads the draws again. With limits, bounds, oscillation and
    diagnostics are those of the limited terms. With a :class:`ppm.CandidateSynthesizer` they are
    exact maxima over its whole set.

    Attributes
    ----------
    model : ppm.Synthesizer
        The model, with the confidential records.
    terms : ppm.Terms
        What each record adds: its weight, and limits if there are any.
    draws : xarray.DataTree
        What the model's ``fit`` returned.
    diagnostics : ppm.diagnostics.BoundDiagnostics or None
        What the chains say of each other; None for one chain of independent draws.
    unweighted : ppm.Fit or None
        The fit that gave the weights, if the mechanism computed them.
    allow_disagreement : bool
        Whether numbers are shown, and releases made, even where chains disagree.
    strict : bool
        Whether ε is a public constant that holds for every database: the terms have limits or a
        cap, they are each record's own, and the chains agree or ``allow_disagreement`` was set
        before the fit. It needs limits or cap, model, and a proper prior or candidates that were
        fixed without looking at the records.

    Examples
    --------
    >>> import ppm
    >>> mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([3, 5, 4, 6, 20]))
    >>> result = mechanism.run(draws=200, random_seed=1)
    >>> result.weights.round(2)
    array([0.82, 0.96, 0.9 , 1.  , 0.  ])
    >>> result.synthesize(2, random_seed=2).values
    array([[ 5,  7, 10,  3, 14],
           [ 3,  9,  3,  2, 10]])
    """

    model: Synthesizer
    terms: Terms
    draws: object
    diagnostics: BoundDiagnostics | None
    unweighted: object
    allow_disagreement: bool
    strict: bool
    _scan: LogLikelihoodScan
    # the m of each call of synthesize(), so that a later one knows of the earlier ones
    _released: list = field(default_factory=list)
    _public = ("model", "terms", "allow_disagreement", "draws_used")

    @property
    def weights(self):
        """Weights α (records,)."""
        return self.terms.weights

    @property
    def faults(self):
        """What is wrong with the chains of this fit, and of the one that gave its weights."""
        both = {"unweighted": self.unweighted, "weighted": self}
        return [
            f"{name} fit: {fault}"
            for name, one in both.items()
            if one is not None and one.diagnostics is not None
            for fault in one.diagnostics.faults
        ]

    def _agreed(self):
        """The scan of this fit; raises where the chains disagree."""
        if self.faults and not self.allow_disagreement:
            raise ChainsDisagreeError(
                "the bound is withheld because of its chains: "
                f"{'; '.join(self.faults)}; ppm.mechanism.bound_fit(…, "
                "allow_disagreement=True) shows the numbers, marked"
            )
        return self._scan

    @property
    def chains_agree(self):
        """Whether the chains of both fits are without faults."""
        return not self.faults

    @property
    def draws_used(self):
        """Number S of draws, all chains together, or of candidates that the maximum is over."""
        return self._scan.draw_maxima.size

    @property
    def record_bounds(self):
        """Largest absolute term of each record, in nats."""
        return self._agreed().bounds

    @property
    def draw_maxima(self):
        """Largest absolute term of each draw (chain, draw), in nats.

        Δ is the largest of these. Without a comparison of chains they are one sequence.
        """
        return self._agreed().draw_maxima

    @property
    def local_bound(self):
        """Local Lipschitz bound Δ, the largest record bound.

        Of a strict result it is only a diagnostic: there ε is the width of the limits, or the cap.
        """
        return float(self._agreed().bounds.max())

    @property
    def oscillation_bound(self):
        """Largest oscillation of a record, in nats: see :func:`ppm.oscillation_bound`."""
        return float(self._agreed().oscillations.max())

    @property
    def guarantee(self):
        """What one release promises, and what it does not: a `ppm.disclosure.Guarantee`."""
        return guarantee_of(self)

    def statement(self, release):
        """Sentences of :func:`ppm.disclosure.release_statement`."""
        return statement_of(self, release)

    def draws_charged(self, releases=1):
        r"""Number of different draws of θ that m releases of this result come from, at most.

        It is m, or the number S of draws in the fit if that is smaller.

        Notes
        -----
        Each release is predicted from one draw of θ, which is chosen without the records. Given
        these choices, releases are computed from the different draws among the chosen ones and from
        public values alone, so that they cost what those draws cost (post-processing): kW for k
        exact independent draws, of which each costs W. There are at most m, and at most S. In
        several calls m counts the releases of all of them: a draw that two calls share is then
        counted twice while others are left, and never too seldom. With groups of records a record
        acts on the S draws of its own group alone.
        """
        return min(check_count("releases", releases), self._draws_held)

    @property
    def _draws_held(self):
        """Number of draws of θ in the fit, all chains together."""
        sizes = self.draws["posterior"].sizes
        return sizes["chain"] * sizes["draw"]

    def epsilon(self, releases=1):
        """ε of m releases, in nats.

        With the number k of different draws of θ behind them, :meth:`draws_charged`, which is m
        unless the fit has fewer draws: for a strict result kW, with the width W of the public
        limits or the cap, which may be published (for (ε, δ) see
        :func:`ppm.pdp.bounded_range_epsilon`, with k releases). Otherwise it is the local 2Δk,
        which was computed from the records and is confidential.
        """
        draws = self.draws_charged(releases)
        if self.strict:
            return pdp.bounded_range_epsilon(self.terms.width, draws)
        return pdp.epsilon(self.local_bound, draws)

    def synthesize(self, releases, *, random_seed=None):
        """Draw m synthetic databases from the pseudo posterior predictive distribution (step 3).

        Give no ``random_seed`` for real records: anyone who knows it can subtract the noise. The
        result is an xarray.DataArray (release, record), or a dataset of such arrays if the model
        has several responses. It has as many records as are confidential, a public number.
        Coordinates of releases and records are removed. Its attributes are ``releases`` and, if the
        run is strict, ``epsilon``, what this call costs by itself, and ``epsilon_total``, what all
        calls of this result up to this one cost together: less than their sum once every draw of
        the fit is paid for. Another :meth:`ppm.PseudoPosteriorMechanism.run` has new draws and adds
        its own, and a pickled copy of this result counts by itself from then on. With a
        :class:`ppm.CandidateSynthesizer`, where this call pays for all draws, ``candidates_drawn``
        says how many different candidates these are (in each group): if they are few for the number
        of draws, the releases share their errors.
        """
        releases = check_count("releases", releases)
        self._agreed()
        synthetic = self.model.predict(
            self.draws, releases=releases, random_seed=random_seed
        )
        # a strict release must not depend on the chains, and warnings can be errors
        if self.faults and not self.strict:
            warnings.warn(
                "released although chains disagree: the epsilon of these databases is "
                "not known",
                stacklevel=2,
            )
        self._released.append(releases)
        public = self._costs(releases) if self.strict else {}
        # coordinates and attributes that a synthesizer adds may be confidential
        responses = getattr(synthetic, "data_vars", {"": synthetic}).values()
        drawn = {name for response in responses for name in response.dims[:2]}
        noted = [
            name
            for name, coordinate in synthetic.coords.items()
            if not coordinate.dims or drawn & {*coordinate.dims}
        ]
        bare = synthetic.drop_vars(noted).drop_attrs().drop_encoding()
        return bare.assign_attrs(releases=releases, **public)

    def _costs(self, releases):
        """Attributes of a strict release: numbers that its ε pays for."""
        together = self.epsilon(sum(self._released))
        costs = {"epsilon": self.epsilon(releases), "epsilon_total": together}
        # a number that all draws of the fit enter
        drawn = self.model.candidates_drawn(self.draws)
        if drawn is not None and releases >= self._draws_held:
            costs["candidates_drawn"] = drawn
        return costs

    def __str__(self):
        """Guarantee, bound and chains; or why they are withheld."""
        try:
            lines = [self.guarantee.headline]
        except ChainsDisagreeError as error:
            return textwrap.fill(str(error), 84)
        if not self.strict:
            source = f"local bound {self.local_bound:.3f} nats"
        elif self.terms.capped:
            source = "cap on every record's oscillation"
        else:
            source = "width of the limits"
        public = self.model.public_set
        draws = (
            f"bounds are exact maxima over {public}"
            if public
            else f"{self.draws_used:,} draws"
        )
        drawn = self.model.candidates_drawn(self.draws)
        if drawn is not None and self._draws_held > 1:
            draws += f", and {drawn_in_words(drawn)}"
        lines.append(f"{source}; {self.terms.records:,} records; {draws}")
        lines += str(
            self.diagnostics
            or "R-hat not computed: one chain, whose draws the "
            "synthesizer declares independent"
        ).splitlines()
        if self.faults:
            lines.append(
                f"CHAINS DISAGREE, shown all the same: {'; '.join(self.faults)}"
            )
        choices = (
            "epsilon may be published if all choices were made without the records; "
        )
        lines.append(
            f"{choices if self.strict else ''}confidential: weights, bounds, diagnostics, "
            "draws and all other numbers above come from the records, and epsilon does "
            "not cover their publication; only what synthesize() returns is for release"
        )
        return "\n".join(textwrap.fill(line, 84) for line in lines)

    def summary(self, releases=1):
        """Bounds, ε of one and of m releases, and diagnostics, as a confidential `pandas.Series`.

        R-hat and effective sample size (ESS) are of the weighted fit, divergences of both fits;
        NaN where a number does not exist.
        """
        import pandas as pd

        names = {
            "R-hat, largest": "r_hat",
            "ESS, largest": "effective_draws",
            "R-hat, sum": "r_hat_log_likelihood",
            "ESS, sum": "effective_draws_log_likelihood",
        }
        first = self.unweighted
        both = [self.diagnostics, first and first.diagnostics]
        divergences = [
            fit.divergences for fit in both if fit and fit.divergences is not None
        ]
        numbers = {
            "Δ, unweighted": float(first._scan.bounds.max()) if first else np.nan,
            "Δ": self.local_bound,
            "draws S": self.draws_used,
            "ε, one release": self.epsilon(),
            "ε, all releases": self.epsilon(releases),
            **{
                label: getattr(self.diagnostics, name, np.nan)
                for label, name in names.items()
            },
            "divergences": sum(divergences) if divergences else np.nan,
        }
        return pd.Series(numbers, dtype=object)


def fit(
    synthesizer,
    terms=None,
    *,
    draws=1000,
    random_seed=None,
    allow_disagreement=False,
    progress=None,
):
    """Draw θ from the pseudo posterior with these terms, and read its bounds.

    The paper's mechanism is two of these: an unweighted fit, whose bounds give the weights
    (:func:`ppm.rules.by_risk`), and a weighted one.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model, with the confidential records.
    terms : ppm.Terms or array_like (records,), optional
        What each record adds, or weights α; by default all weights are 1.
    draws, random_seed, progress
        As for :meth:`ppm.Synthesizer.fit`.
    allow_disagreement : bool, default False
        Show bounds and ε even where chains disagree, marked as such. With limits and terms that are
        each record's own the result is then strict whatever the chains do. **Decide before the
        first fit of the confidential records**: a second run after a withheld one would itself tell
        something of them.

    Examples
    --------
    The paper's mechanism, step by step:

    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> unweighted = ppm.fit(model, draws=200, random_seed=1)
    >>> terms = ppm.rules.by_risk(unweighted, scale=0.9)
    >>> weighted = ppm.fit(model, terms, draws=200, random_seed=2)
    >>> unweighted.local_bound > weighted.local_bound
    True
    """
    model = as_synthesizer(synthesizer)
    allow_disagreement = check_flag("allow_disagreement", allow_disagreement)
    terms = as_terms(terms, model.records)
    if terms.limits is not None:
        rules.check_terms(model, terms)
        rules.warn_where_low(terms)
        model.check_own_terms()
    settings = {"draws": check_count("draws", draws), "progress": progress}
    drawn = model.fit(terms, random_seed=random_seed, **settings)
    return _read(model, drawn, terms, allow_disagreement=allow_disagreement)


def bound_fit(
    synthesizer, fit, terms=None, *, unweighted=None, allow_disagreement=False
):
    """Compute the bounds of draws that there are (steps 2b-c); the result is never strict.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model that the fit was made with.
    fit : xarray.DataTree
        What the model's ``fit`` returned for these terms.
    terms : ppm.Terms or array_like (records,), optional
        The terms of that fit, or its weights; by default all weights are 1.
    unweighted : ppm.Fit, optional
        The fit that gave the weights.
    allow_disagreement : bool, default False
        Show bounds and ε even where the chains disagree, marked as such.

    Examples
    --------
    >>> import ppm
    >>> model, weights = ppm.GammaPoisson([3, 5, 20]), [1.0, 1.0, 0.2]
    >>> fit = model.fit(weights, draws=500, random_seed=1)
    >>> result = ppm.mechanism.bound_fit(model, fit, weights)
    >>> result.draws_used, round(result.local_bound, 1)
    (500, 7.5)
    """
    model = as_synthesizer(synthesizer)
    allow_disagreement = check_flag("allow_disagreement", allow_disagreement)
    model.check_fit(fit, "fit")
    return _read(
        model,
        fit,
        as_terms(terms, model.records),
        unweighted=_checked(model, unweighted),
        allow_disagreement=allow_disagreement,
        may_be_strict=False,
    )


class PseudoPosteriorMechanism(Brief):
    r"""The Bayesian pseudo posterior mechanism for one model.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model, with the confidential records. A PyMC model is wrapped by
        :class:`ppm.PyMCSynthesizer`, which gets the ``model_settings``.
    scale, shift, truncate_at : float, optional
        The paper's c, g and M (in nats), as for :func:`ppm.record_weights`.
    weights : array_like (records,), optional
        Weights to use instead of the paper's rule: all 1 for the unweighted posterior,
        :func:`ppm.scalar_weights` for the exponential mechanism, or sampling weights. With weights
        above 1 the paper's theorems on many records do not apply.
    censor : ppm.Censoring, optional
        Public limits of each record's weighted term (Hu, Williams and Savitsky, 2022, arXiv
        2205.05003). Alone, with all weights 1, it makes the result strict: its ε is the width of
        the limits, for every database, if limits, model and a proper prior were fixed without
        looking at the records. With ``weights`` the result is strict only under
        ``independent_weights``; with the paper's rule, whose weights react to all records, never.
    cap : float, optional
        The W, above 0, in nats, of weights :math:`\alpha_i = \min(1, W / \text{oscillation}_i)`,
        the paper's idea of weights by each record's own risk. It needs a finite public set of
        parameters, as :class:`ppm.CandidateSynthesizer` has, over which the oscillations are
        maxima. The result is strict with ε = W for every database.
    independent_weights : bool, default False
        Assert that each of the ``weights`` depends only on its own record and on public values.
        This cannot be checked. Every ε for all databases needs it.

    Attributes
    ----------
    model : ppm.Synthesizer
        The model.
    terms : ppm.Terms or None
        The records' terms; None where :meth:`run` computes their weights.

    Examples
    --------
    >>> import ppm
    >>> strict = ppm.PseudoPosteriorMechanism(
    ...     ppm.GammaPoisson([3, 5, 4, 6, 20], shape=2, rate=0.4), censor=ppm.Censoring(-3, -1)
    ... ).run(draws=200, random_seed=1)
    >>> strict.guarantee.kind, strict.epsilon(releases=3)
    ('strict', 6.0)
    """

    _public = ("model", "rule", "censor", "terms")

    def __init__(
        self,
        synthesizer,
        *,
        scale=None,
        shift=None,
        truncate_at=None,
        weights=None,
        censor=None,
        cap=None,
        independent_weights=False,
        **model_settings,
    ):
        self.model = as_synthesizer(synthesizer, **model_settings)
        if not isinstance(censor, Censoring | None):
            raise ValueError(
                f"censor must be a ppm.Censoring; got {type(censor).__name__}"
            )
        self.censor = censor
        # any of these, even at its default, asks for weights that react to all records
        self.rule = {
            name: check_number(name, value, above=-np.inf if name == "shift" else 0)
            for name, value in (
                ("scale", scale),
                ("shift", shift),
                ("truncate_at", truncate_at),
            )
            if value is not None
        }
        own = check_flag("independent_weights", independent_weights)
        if own and weights is None:
            raise ValueError(
                "independent_weights says that given weights react to no other "
                "record: give it together with weights"
            )
        if cap is not None and (weights is not None or censor is not None or self.rule):
            raise ValueError(
                "cap must be given without weights, censor, scale, shift and truncate_at"
            )
        if weights is not None and self.rule:
            raise ValueError(
                "weights replaces scale, shift and truncate_at: leave those out"
            )
        # what there is before any weights: limits, if they are asked for
        self._unweighted = (
            as_terms(None, self.model.records)
            if censor is None
            else rules.limited(self.model, censor)
        )
        rules.warn_where_low(self._unweighted)
        if cap is not None:
            self.terms = rules.capped(
                self.model, check_number("cap", cap, **rules.WIDTHS)
            )
        elif weights is not None:
            weights = check_weights(weights, self.model.records)
            self.terms = self._weighted(weights, own=own, source="caller")
        elif censor is not None and not self.rule:
            self.terms = self._unweighted
        else:
            self.terms = None  # run() computes their weights, by the paper's rule

    def _weighted(self, weights, **said):
        return replace(self._unweighted, weights=weights, **said)

    def run(
        self,
        *,
        draws=1000,
        random_seed=None,
        unweighted=None,
        allow_disagreement=False,
        progress=None,
    ):
        """Fit, weigh, refit and bound: the result is the weighted :class:`ppm.Fit`.

        Parameters
        ----------
        draws, random_seed, progress, allow_disagreement
            As for :func:`ppm.fit`; the two fits get independent streams.
        unweighted : ppm.Fit, optional
            The ``unweighted`` fit of an earlier run on the same records, to save the first fit.
        """
        settings = {"draws": check_count("draws", draws), "progress": progress}
        allow = check_flag("allow_disagreement", allow_disagreement)
        first, second = streams(random_seed, 2)
        if self.terms is not None and unweighted is not None:
            raise ValueError(
                "unweighted is not used here, because no weights are computed; omit it"
            )
        unweighted, terms = _checked(self.model, unweighted), self.terms
        if terms is None:
            if unweighted is None:
                drawn = self.model.fit(random_seed=first, **settings)
                ones = as_terms(None, self.model.records)
                unweighted = _read(self.model, drawn, ones, allow_disagreement=allow)
            # where its chains disagree the result says so, and shows no number
            readable = replace(unweighted, allow_disagreement=True)
            terms = rules.by_risk(readable, **self.rule)
            terms = self._weighted(terms.weights, own=False, source=terms.source)
        if terms.limits is not None:
            self.model.check_own_terms()
        drawn = self.model.fit(terms, random_seed=second, **settings)
        return _read(
            self.model, drawn, terms, unweighted=unweighted, allow_disagreement=allow
        )


def _checked(model, unweighted):
    """An unweighted fit, if it is one of this model's records."""
    if unweighted is None:
        return None
    if not isinstance(unweighted, Fit):
        raise ValueError(
            "unweighted must be a ppm.Fit, such as the unweighted one of an earlier run; got "
            f"{type(unweighted).__name__}"
        )
    rules.check_unweighted(unweighted)
    model.check_fit(unweighted.draws, "unweighted")
    return unweighted


def _read(
    model,
    draws,
    terms,
    *,
    unweighted=None,
    allow_disagreement=False,
    may_be_strict=True,
):
    """The fit that these draws are: extremes of the terms, and what the chains say."""
    scanned = model.read(draws, terms)
    chains = np.ndim(scanned.draw_maxima) > 1 and len(scanned.draw_maxima)
    diagnostics = None
    if not model.independent_draws or chains > 1:
        diagnostics = diagnose(
            scanned.draw_maxima,
            scanned.draw_sums,
            terms.weights,
            draws.get("sample_stats"),
            total_decides=terms.limits is not None,
        )
    strict = may_be_strict and terms.strict
    # a strict release must not depend on the records, and warnings can be errors
    decided = strict and (allow_disagreement or diagnostics is None)
    if terms.limits is not None and np.any(terms.weights) and not decided:
        _warn_if_nothing_moves(terms, float(scanned.oscillations.max()))
    made = Fit(
        model=model,
        terms=terms,
        draws=draws,
        diagnostics=diagnostics,
        unweighted=unweighted,
        allow_disagreement=allow_disagreement,
        strict=strict,
        _scan=scanned,
    )
    # settled once: a result that was withheld cannot become strict later
    return replace(made, strict=strict and (allow_disagreement or not made.faults))


def _warn_if_nothing_moves(terms, oscillation):
    """Warn where all terms stay at one limit, so that the release says little of the records."""
    if oscillation < _HARDLY * terms.width:
        warnings.warn(
            f"censor: over these draws no record's term moves by more than {_HARDLY:.0%} of the "
            "width, so the release says next to nothing about the records; "
            "ppm.censoring.censoring_interval places limits by public data",
            # points at the caller's line outside the library
            skip_file_prefixes=(os.path.join(os.path.dirname(__file__), ""),),
        )
