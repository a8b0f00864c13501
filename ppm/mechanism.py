"""The pseudo posterior mechanism: fit, weigh, refit, bound, release (the paper's section 3)."""

import textwrap
import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ppm import pdp
from ppm.censoring import warn_if_nothing_moves
from ppm.checks import check_count, check_flag, check_number, check_weights
from ppm.diagnostics import BoundDiagnostics, ChainsDisagreeError, diagnose
from ppm.disclosure import drawn_in_words, guarantee_of
from ppm.lipschitz import LogLikelihoodScan, scan
from ppm.seeds import streams
from ppm.synthesizers.accept import as_synthesizer, check_censor, check_fit
from ppm.synthesizers.base import Brief
from ppm.weights import capped_map, mapped_weights, record_weights

__all__ = ["PseudoPosteriorMechanism", "MechanismResult", "bound_fit"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MechanismResult(Brief):
    """Weights, bounds, ε and releases of one run.

    What :meth:`synthesize` returns is meant for release, with the statement on it and, if the
    result is strict, ε and the limits; everything else was computed from the confidential records.
    Bounds, ε and releases raise a :class:`ppm.ChainsDisagreeError` where the chains disagree, stand
    still or diverge often (the fit with ``censor``: at all), unless the run had
    ``allow_disagreement=True``; :func:`bound_fit` reads the fits again. With ``censor``, bounds,
    oscillation and diagnostics are those of the records' censored *terms*. With a
    :class:`ppm.CandidateSynthesizer` they are exact maxima over its whole set.

    Attributes
    ----------
    synthesizer, censor, cap, allow_disagreement
        As given to the mechanism and to the run.
    weights : numpy.ndarray (records,)
        Weights α.
    draws, unweighted : xarray.DataTree
        The weighted fit, and the unweighted one that gave the weights (or None).
    diagnostics, unweighted_diagnostics : ppm.diagnostics.BoundDiagnostics or None
        Of both fits. None for one chain of a synthesizer with ``independent_draws``, and where
        there was no unweighted fit.
    has_weights : bool
        Whether there are weights, given or computed; if not, all are 1 by the setting alone.
    independent_weights : bool
        Whether each weight depends only on its own record and on public values: true where
        ``censor`` is used alone, with ``cap``, or if the caller asserts it.
    strict : bool
        Whether ε is a public constant that holds for every database: terms are censored or their
        oscillations capped, weights are independent, and the chains agree or
        ``allow_disagreement`` was set before the fit. It needs limits or cap, model, and a proper
        prior or candidates that were fixed without looking at the records.

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

    synthesizer: object
    weights: np.ndarray
    draws: object
    unweighted: object
    diagnostics: object
    unweighted_diagnostics: object
    censor: object
    cap: float | None
    has_weights: bool
    independent_weights: bool
    allow_disagreement: bool
    strict: bool
    _faults: list
    _scan: LogLikelihoodScan
    _unweighted_bound: float
    # the m of each call of synthesize(), so that a later one knows of the earlier ones
    _released: list = field(default_factory=list)
    _public = (
        "synthesizer",
        "censor",
        "cap",
        "independent_weights",
        "allow_disagreement",
        "draws_used",
    )

    def _agreed(self):
        """The scan of the weighted fit; raises where the chains disagree."""
        if self._faults and not self.allow_disagreement:
            raise ChainsDisagreeError(
                "the bound is withheld because of its chains: "
                f"{'; '.join(self._faults)}; ppm.mechanism.bound_fit(…, "
                "allow_disagreement=True) shows the numbers, marked"
            )
        return self._scan

    @property
    def chains_agree(self):
        """Whether the chains of both fits are without faults."""
        return not self._faults

    @property
    def draws_used(self):
        """Number S of draws, all chains together, or of candidates that the maximum is over."""
        return self._scan.draw_maxima.size

    @property
    def record_bounds(self):
        """Bounds of the weighted records, in nats."""
        return self._agreed().bounds

    @property
    def draw_maxima(self):
        """Largest weighted absolute log-likelihood of each draw (chain, draw), in nats.

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
            return pdp.bounded_range_epsilon(self.cap or self.censor.width, draws)
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
        synthetic = self.synthesizer.predict(
            self.draws, releases=releases, random_seed=random_seed
        )
        # a strict release must not depend on the chains, and warnings can be errors
        if self._faults and not self.strict:
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
        if (
            hasattr(self.synthesizer, "candidates_drawn")
            and releases >= self._draws_held
        ):
            costs["candidates_drawn"] = self.synthesizer.candidates_drawn(self.draws)
        return costs

    def __str__(self):
        """Guarantee, bound and chains; or why they are withheld."""
        try:
            lines = [self.guarantee.headline]
        except ChainsDisagreeError as error:
            return textwrap.fill(str(error), 84)
        strict = (
            "width of the limits"
            if self.cap is None
            else "cap on every record's oscillation"
        )
        source = strict if self.strict else f"local bound {self.local_bound:.3f} nats"
        public = getattr(self.synthesizer, "public_set", "")
        draws = (
            f"bounds are exact maxima over {public}"
            if public
            else f"{self.draws_used:,} draws"
        )
        if hasattr(self.synthesizer, "candidates_drawn") and self._draws_held > 1:
            draws += (
                f", and {drawn_in_words(self.synthesizer.candidates_drawn(self.draws))}"
            )
        lines.append(f"{source}; {self.weights.size:,} records; {draws}")
        lines += str(
            self.diagnostics
            or "R-hat not computed: one chain, whose draws the "
            "synthesizer declares independent"
        ).splitlines()
        if self._faults:
            lines.append(
                f"CHAINS DISAGREE, shown all the same: {'; '.join(self._faults)}"
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
        both = [self.diagnostics, self.unweighted_diagnostics]
        divergences = [
            fit.divergences for fit in both if fit and fit.divergences is not None
        ]
        numbers = {
            "Δ, unweighted": self._unweighted_bound,
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
        the paper's idea of weights by each record's own risk. It needs a
        :class:`ppm.CandidateSynthesizer`, over whose public set the oscillations are maxima. The
        result is strict with ε = W for every database.
    independent_weights : bool, default False
        Assert that each of the ``weights`` depends only on its own record and on public values.
        This cannot be checked. Every ε for all databases needs it.

    Examples
    --------
    >>> import ppm
    >>> strict = ppm.PseudoPosteriorMechanism(
    ...     ppm.GammaPoisson([3, 5, 4, 6, 20], shape=2, rate=0.4), censor=ppm.Censoring(-3, -1)
    ... ).run(draws=200, random_seed=1)
    >>> strict.guarantee.kind, strict.epsilon(releases=3)
    ('strict', 6.0)
    """

    _public = ("synthesizer", "rule", "censor", "cap", "independent_weights")

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
        self.synthesizer = as_synthesizer(synthesizer, **model_settings)
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
        self.censor = check_censor(self.synthesizer, censor)
        self.independent_weights = check_flag(
            "independent_weights", independent_weights
        )
        if self.independent_weights and weights is None:
            raise ValueError(
                "independent_weights says that given weights react to no other "
                "record: give it together with weights"
            )
        self.has_weights = censor is None or weights is not None or bool(self.rule)
        self.cap = cap
        if cap is not None:
            self.cap, self.independent_weights = check_number("cap", cap, above=0), True
            if weights is not None or censor is not None or self.rule:
                raise ValueError(
                    "cap must be given without weights, censor, scale, shift and "
                    "truncate_at"
                )
            if not hasattr(self.synthesizer, "extremes"):
                raise TypeError(
                    "cap needs a ppm.CandidateSynthesizer, with a finite public set of "
                    f"parameters; got {type(self.synthesizer).__name__}"
                )
            getattr(self.synthesizer, "check_own_terms", lambda: None)()
            oscillations = self.synthesizer.extremes().oscillations
            weights = mapped_weights(oscillations, capped_map(self.cap))
        if weights is not None:
            if self.rule:
                raise ValueError(
                    "weights replaces scale, shift and truncate_at: leave those out"
                )
            weights = check_weights(weights, self.synthesizer.records)
        elif censor is not None and not self.rule:
            weights, self.independent_weights = np.ones(self.synthesizer.records), True
        # None: run() computes them, by the rule
        self.weights = weights

    def run(
        self,
        *,
        draws=1000,
        random_seed=None,
        unweighted=None,
        allow_disagreement=False,
        progress=None,
    ):
        """Fit, weigh, refit and bound.

        Parameters
        ----------
        draws, random_seed, progress
            As for the synthesizer's ``fit``; the two fits get independent streams.
        unweighted : xarray.DataTree, optional
            The ``unweighted`` fit of an earlier run on the same records, to save the first fit.
        allow_disagreement : bool, default False
            Show bounds and ε even where chains disagree, marked as such. With ``censor`` and
            independent weights the result is then strict whatever the chains do. **Decide before
            the first fit of the confidential records**: a second run after a withheld one would
            itself tell something of them.
        """
        draws = check_count("draws", draws)
        allow_disagreement = check_flag("allow_disagreement", allow_disagreement)
        if unweighted is not None:
            if self.weights is not None:
                raise ValueError(
                    "unweighted is not used here, because no weights are computed; "
                    "omit it"
                )
            check_fit(self.synthesizer, unweighted, "unweighted")
        first, second = streams(random_seed, 2)
        settings = {"draws": draws, "progress": progress}
        weights, examined = self.weights, _Examined()
        if weights is None:
            if unweighted is None:
                unweighted = self.synthesizer.fit(random_seed=first, **settings)
            examined = _examine(self.synthesizer, unweighted)
            weights = record_weights(examined.scan.bounds, **self.rule)
        limits = {"censor": self.censor, "cap": self.cap}
        limits = {name: limit for name, limit in limits.items() if limit is not None}
        fit = self.synthesizer.fit(weights, random_seed=second, **settings, **limits)
        return _result(
            self.synthesizer,
            _examine(self.synthesizer, fit, weights, self.censor),
            examined,
            weights=weights,
            has_weights=self.has_weights,
            censor=self.censor,
            cap=self.cap,
            independent_weights=self.independent_weights,
            allow_disagreement=allow_disagreement,
        )


def bound_fit(
    synthesizer, fit, weights, *, unweighted=None, censor=None, allow_disagreement=False
):
    """Compute the bounds of an existing fit (steps 2b-c); the result is never strict.

    Parameters
    ----------
    synthesizer, weights, censor
        As for :class:`ppm.PseudoPosteriorMechanism`: what the fit was made with.
    fit, unweighted : xarray.DataTree
        What the synthesizer's ``fit`` returned for these weights, and the fit that gave them.
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
    synthesizer = as_synthesizer(synthesizer)
    weights = check_weights(weights, synthesizer.records)
    censor = check_censor(synthesizer, censor)
    allow_disagreement = check_flag("allow_disagreement", allow_disagreement)
    check_fit(synthesizer, fit, "fit")
    examined = _Examined()
    if unweighted is not None:
        check_fit(synthesizer, unweighted, "unweighted")
        examined = _examine(synthesizer, unweighted)
    return _result(
        synthesizer,
        _examine(synthesizer, fit, weights, censor),
        examined,
        weights=weights,
        censor=censor,
        allow_disagreement=allow_disagreement,
    )


class _Examined(NamedTuple):
    """A fit or none, one pass over its log-likelihood, and what its chains say of each other."""

    fit: object = None
    scan: LogLikelihoodScan | None = None
    diagnostics: BoundDiagnostics | None = (
        None  # None: no fit, or one chain of independent draws
    )

    def faults(self, name):
        """Faults of the chains, with the name of the fit."""
        found = self.diagnostics.faults if self.diagnostics else ()
        return [f"{name} fit: {fault}" for fault in found]


def _examine(synthesizer, fit, weights=None, censor=None):
    """Read the log-likelihood of a fit, and compare its chains."""
    independent = getattr(synthesizer, "independent_draws", False)
    if independent and hasattr(
        synthesizer, "extremes"
    ):  # over all values of θ that are possible
        return _Examined(fit, synthesizer.extremes(weights, censor=censor))
    log_lik = synthesizer.log_likelihood(fit)
    compared = getattr(log_lik, "sizes", {}).get("chain", 1) > 1 or not independent
    levels = None if censor is None else censor.levels(synthesizer)
    scanned = scan(log_lik, weights, censor=censor, levels=levels)
    if not compared:
        return _Examined(fit, scanned)
    return _Examined(
        fit,
        scanned,
        diagnose(
            scanned.draw_maxima,
            scanned.draw_sums,
            scanned.factors,
            fit.get("sample_stats"),
            total_decides=censor is not None,
        ),
    )


def _result(
    synthesizer,
    weighted,
    unweighted,
    *,
    weights,
    censor,
    allow_disagreement,
    cap=None,
    has_weights=True,
    independent_weights=False,
):
    """The result of a weighted fit, and of the unweighted one, if any, that gave the weights."""
    faults = unweighted.faults("unweighted") + weighted.faults("weighted")
    limited = cap is not None or (censor is not None and independent_weights)
    # a strict release must not depend on the records, and warnings can be errors
    decided = limited and (allow_disagreement or weighted.diagnostics is None)
    if censor is not None and np.any(weights) and not decided:
        warn_if_nothing_moves(censor, float(weighted.scan.oscillations.max()))
    return MechanismResult(
        synthesizer=synthesizer,
        censor=censor,
        cap=cap,
        weights=weights,
        draws=weighted.fit,
        diagnostics=weighted.diagnostics,
        allow_disagreement=allow_disagreement,
        independent_weights=independent_weights,
        has_weights=has_weights,
        # settled once: a result that was withheld cannot become strict later
        strict=limited and (allow_disagreement or not faults),
        unweighted=unweighted.fit,
        unweighted_diagnostics=unweighted.diagnostics,
        _unweighted_bound=float(unweighted.scan.bounds.max())
        if unweighted.scan
        else np.nan,
        _faults=faults,
        _scan=weighted.scan,
    )
