"""The pseudo posterior mechanism: fit, weigh, refit, bound, release (the paper's section 3)."""

import textwrap
import warnings
from dataclasses import dataclass, field, replace

import numpy as np

from ppm import pdp
from ppm._random import streams
from ppm._validation import check_count, check_flag, check_number, check_weights
from ppm.censoring import check_censor, warn_if_nothing_moves
from ppm.diagnostics import ChainsDisagreeError, compare_chains
from ppm.disclosure import local_guarantee, strict_guarantee
from ppm.lipschitz import read_once
from ppm.synthesizers.accepted import as_synthesizer
from ppm.synthesizers.base import check_fit
from ppm.weights import record_weights

__all__ = ["PseudoPosteriorMechanism", "MechanismResult", "bound_fit"]

#: printed with every result, and saved with every table of its confidential parts
CONFIDENTIAL = (
    "confidential: weights, bounds, diagnostics and draws, and the numbers above, are computed "
    "from the records outside epsilon; only what synthesize() returns is meant for release"
)


@dataclass(frozen=True, eq=False)
class MechanismResult:
    """What one run of the mechanism computed.

    Only :meth:`synthesize` returns something meant for release. Weights, bounds and draws were
    computed from the confidential records and are confidential themselves.

    Bounds, ε and releases are withheld with a :class:`ppm.ChainsDisagreeError` where the chains
    disagree, stand still or diverge often: a stuck chain gives a wrong Δ as readily as a right one.
    See :attr:`ppm.diagnostics.BoundDiagnostics.faults`. The fits are not lost;
    :meth:`despite_disagreement` shows what they would give. Nothing is withheld of a run with
    ``allow_disagreement=True``.

    Of a run with ``censor=`` the bounds, the oscillation and the diagnostics are those of the
    records' *terms*, as they stand in the pseudo likelihood: see :class:`ppm.Censoring`.

    Attributes
    ----------
    weights : numpy.ndarray, shape (records,)
        Weights α the records were given.
    censor : ppm.Censoring or None
        The public limits of every record's term.
    own_weights : bool
        Whether every weight is a fixed number, or a function of its own record and of public
        things: so it is where censoring stands alone, and where the caller says so.
    strict : bool
        Whether ε is that of the limits, for every database: terms are censored, no weight reacts
        to another record, and either nothing is held against the chains, or it was decided before
        the fit that this does not matter. Never by :meth:`despite_disagreement` alone.
    guarantee : ppm.disclosure.Guarantee
        What is promised: strict or local, its ε, its neighbours, and what it leaves out.
    record_bounds : numpy.ndarray, shape (records,)
        Bounds of the weighted records, in nats. A diagnostic where the result is strict.
    local_bound : float
        Local Lipschitz bound Δ, the largest of them.
    oscillation_bound : float
        The largest oscillation of a record over the same draws, in nats; at most 2Δ. An estimate,
        from below, of a bound on what one release loses if no weight reacts to another record.
    diagnostics : ppm.diagnostics.BoundDiagnostics or None
        R-hat, effective sample size and spread of the bound's quantity in the weighted fit. None
        means not checked: one chain of a synthesizer with ``independent_draws``.
    unweighted_diagnostics : ppm.diagnostics.BoundDiagnostics or None
        The same of the unweighted fit that gave the weights, if there was one.
    chains_agree : bool
        Whether nothing is held against the chains of either fit. It is true of a single chain of
        independent draws, which is not checked.
    allow_disagreement : bool
        What the run was told before its fit: whether the release is gated by the chains' agreement.
    shown_anyway : bool
        Whether :meth:`despite_disagreement` shows the bounds afterwards.
    draws : xarray.DataTree
        The weighted fit: posterior draws and log-likelihood.
    draws_used : int
        Number S of draws the maximum was taken over (all chains).
    unweighted : xarray.DataTree or None
        The fit that gave the weights, to be passed on to another run.

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

    weights: np.ndarray = field(repr=False)
    _bounds: np.ndarray = field(repr=False)
    _oscillation: float = field(repr=False)
    draws_used: int
    diagnostics: object = field(repr=False)
    unweighted_diagnostics: object = field(repr=False)
    allow_disagreement: bool
    draws: object = field(repr=False)
    unweighted: object = field(repr=False)
    synthesizer: object = field(repr=False)
    _unweighted_bound: float = field(default=np.nan, repr=False)
    censor: object = None
    own_weights: bool = False
    shown_anyway: bool = False

    @property
    def strict(self):
        """Whether ε is a public constant that holds for every database."""
        if self.censor is None or not self.own_weights:
            return False
        return self.allow_disagreement or self.chains_agree

    @property
    def gated(self):
        """Whether a release depends on the chains' agreement, and so on the records."""
        return self.diagnostics is not None and not self.allow_disagreement

    @property
    def guarantee(self):
        """What one release promises, and what is outside it, unless the chains disagree."""
        self._withhold()
        if self.strict:
            return strict_guarantee(
                self.censor.width,
                exact=self.diagnostics is None,
                given=bool(np.any(self.weights != 1.0)),
                gated=self.gated,
            )
        return local_guarantee(
            self.epsilon(), censored=self.censor is not None, agree=self.chains_agree
        )

    @property
    def chains_agree(self):
        """Whether no fit behind the bounds shows chains that disagree."""
        return not self._disagreements()

    @property
    def record_bounds(self):
        """Bounds of the weighted records, in nats, unless the chains disagree."""
        self._withhold()
        return self._bounds

    @property
    def local_bound(self):
        """Local Lipschitz bound Δ, in nats, unless the chains disagree."""
        return float(self.record_bounds.max())

    @property
    def oscillation_bound(self):
        """Largest oscillation of a record, in nats, unless the chains disagree.

        An estimate over these draws, not an ε: see :func:`ppm.oscillation_bound`.
        """
        self._withhold()
        return self._oscillation

    def despite_disagreement(self):
        """The same result with its bounds shown, marked, although the chains disagree."""
        return replace(self, shown_anyway=True)

    def _disagreements(self):
        fits = {"unweighted": self.unweighted_diagnostics, "weighted": self.diagnostics}
        return [
            f"{name} fit: {fault}"
            for name, found in fits.items()
            if found is not None
            for fault in found.faults
        ]

    def _withhold(self):
        disagreements = self._disagreements()
        if disagreements and not (self.allow_disagreement or self.shown_anyway):
            raise ChainsDisagreeError(
                "the bound is withheld because of the chains behind it: "
                f"{'; '.join(disagreements)}{_how_to_run_longer(self.synthesizer)}; "
                "despite_disagreement() shows marked numbers"
            )

    def __str__(self):
        """Δ, ε of one release and how far to trust them; or why they are withheld."""
        try:
            self._withhold()
        except ChainsDisagreeError as error:
            return textwrap.fill(str(error), 84)
        seen = f"over {self.draws_used:,} draws and {self.weights.size:,} records"
        told = f"epsilon {self.epsilon():.3f} for one release"
        gate = "" if self.gated or self.diagnostics is None else ", not gated by the records"
        lines = [
            f"{told}, for every database{gate}: the width of the limits ({seen})"
            if self.strict
            else f"local bound {self.local_bound:.3f} nats {seen}; {told}"
        ]
        if self.censor is not None and not self.own_weights:
            told = (
                f"the width of the limits, {self.censor.width:g}, is no epsilon here: the weights "
                "may react to other records. Of given ones that do not, say fixed_weights=True"
            )
            lines.extend(textwrap.wrap(told, 84))
        if self.diagnostics is not None:
            lines.extend(str(self.diagnostics).splitlines())
        else:
            lines.append("R-hat not checked: one chain of draws that are called independent")
        if not self.chains_agree:
            found = "; ".join(self._disagreements())
            lines.extend(textwrap.wrap(f"CHAINS DISAGREE, shown all the same: {found}", 84))
        told = CONFIDENTIAL
        if self.strict:
            told = f"epsilon may be published; {told.replace('the numbers', 'the other numbers')}"
        lines.extend(textwrap.wrap(told, 84))
        return "\n".join(lines)

    def confidential(self):
        """Weights and bounds of the records, marked as what must not leave the building.

        Returns
        -------
        xarray.Dataset, dimension record
            ``weights`` and ``record_bounds`` (nats), with ``local_bound``, ``oscillation_bound``,
            ``draws_used`` and ``chains_agree`` (0 or 1) among the attributes. The attribute
            ``confidential`` says what they are, also in a file they are saved to.

        Raises
        ------
        ChainsDisagreeError
            If the chains disagree.
        """
        import xarray as xr

        return xr.Dataset(
            {"weights": ("record", self.weights), "record_bounds": ("record", self.record_bounds)},
            attrs={
                "confidential": CONFIDENTIAL,
                "local_bound": self.local_bound,
                "oscillation_bound": float(self.oscillation_bound),
                "draws_used": self.draws_used,
                "chains_agree": int(self.chains_agree),
            },
        )

    def summary(self, releases=1):
        """Bounds, ε and diagnostics of both fits in one row: confidential, but a strict result's ε.

        Parameters
        ----------
        releases : int, default 1
            The m of ``ε, all releases``.

        Returns
        -------
        pandas.Series
            Bounds and ε in nats. ``Δ, unweighted`` is NaN without an unweighted fit; R-hat and
            effective sample size (ESS) of the weighted fit, for the largest weighted
            \\|log-likelihood\\| of each draw and for the weighted sum, are NaN where they were not
            checked; divergences are those of both fits, and NaN where no fit counts them.

        Raises
        ------
        ChainsDisagreeError
            If the chains disagree.
        """
        import pandas as pd

        found = self.diagnostics
        both = [part for part in (found, self.unweighted_diagnostics) if part is not None]
        counted = [part.divergences for part in both if part.divergences is not None]
        return pd.Series(
            {
                "Δ, unweighted": self._unweighted_bound,
                "Δ": self.local_bound,
                "draws S": self.draws_used,
                "ε, one release": self.epsilon(),
                "ε, all releases": self.epsilon(releases),
                "R-hat, largest": np.nan if found is None else found.r_hat,
                "ESS, largest": np.nan if found is None else found.effective_draws,
                "R-hat, sum": np.nan if found is None else found.r_hat_log_likelihood,
                "ESS, sum": np.nan if found is None else found.effective_draws_log_likelihood,
                "divergences": sum(counted) if counted else np.nan,
            },
            dtype=object,
        )

    def epsilon(self, releases=1):
        """ε of m releases, in nats, unless the chains disagree.

        Of a strict result it is mW, with the width W of the public limits, and may be published;
        :func:`ppm.pdp.bounded_range_epsilon` says what a δ takes off it. Otherwise it is the local
        2Δm, computed from the records: it stays inside.

        Parameters
        ----------
        releases : int, default 1
            Number m of synthetic databases, 1 or more.

        Returns
        -------
        float
            ε in nats.

        Raises
        ------
        ValueError
            If ``releases`` is not a whole number of at least 1.
        ChainsDisagreeError
            If the chains disagree.
        """
        self._withhold()
        if self.strict:
            return pdp.bounded_range_epsilon(self.censor.width, releases)
        return pdp.epsilon(self.local_bound, releases)

    def synthesize(self, releases, *, random_seed=None):
        """Draw synthetic databases from the pseudo posterior predictive distribution.

        Parameters
        ----------
        releases : int
            Number m of synthetic databases, 1 or more. Their ε is ``epsilon(releases)``; that of
            databases from several calls adds up.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness. For a release of real records leave it out: whoever knows the
            seed can draw the noise again.

        Returns
        -------
        xarray.DataArray, dimensions (release, record)
            The databases, with the attribute ``releases``, and ``epsilon`` where the result is
            strict: a local ε was computed from the records and does not travel with them. There
            are as many records as in the confidential database, whose number counts as public.
            Coordinates of releases and records are left out. Moving values into a public range
            costs nothing: ``.clip(low, high)`` keeps the attributes.

        Warns
        -----
        UserWarning
            If the chains disagree and the result, which is not strict, is shown all the same.

        Raises
        ------
        ValueError
            If ``releases`` is not a whole number of at least 1.
        ChainsDisagreeError
            If the chains disagree, so that the databases' ε is not known.

        Notes
        -----
        Savitsky, Williams and Hu (2022), section 3, step 3.
        """
        releases = check_count("releases", releases)
        self._withhold()
        synthetic = self.synthesizer.predict(self.draws, releases=releases, random_seed=random_seed)
        # where warnings are errors this one would gate a release that nothing should
        if not (self.strict or self.chains_agree):
            warnings.warn(
                "released although chains disagree: the epsilon of these databases is not "
                "known", stacklevel=2,
            )
        public = {"epsilon": self.epsilon(releases)} if self.strict else {}
        return _bare(synthetic).assign_attrs(releases=releases, **public)


def _bare(synthetic):
    """Synthetic databases without what a synthesizer noted on them, which may be confidential."""
    responses = getattr(synthetic, "data_vars", {"": synthetic}).values()
    drawn = {name for response in responses for name in response.dims[:2]}
    noted = [
        name
        for name, coordinate in synthetic.coords.items()
        if not coordinate.dims or drawn & {*coordinate.dims}
    ]
    return synthetic.drop_vars(noted).drop_attrs().drop_encoding()


class PseudoPosteriorMechanism:
    r"""The Bayesian pseudo posterior mechanism for one synthesizer.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model, holding the confidential records. A PyMC model is taken as it is written, by
        :class:`ppm.PyMCSynthesizer`.
    scale, shift : float, optional
        The paper's c and g in :math:`\alpha_i = c\,(1 - \tilde f_i) + g`; 1 and 0 by default.
    truncate_at : float, optional
        The paper's M, in nats.
    weights : array_like, shape (records,), optional
        Weights to use as they are, in the place of the paper's rule: all 1 for the unweighted
        posterior, :func:`ppm.scalar_weights` for the exponential mechanism, sampling weights (above
        1, too) for a sample that does not mirror its population. Not to be combined with ``scale``,
        ``shift`` or ``truncate_at``. Without ``censor`` a weight of 5 makes its record's bound five
        times as large, and the paper's theorems on many records, which need weights of at most 1,
        do not apply.
    censor : ppm.Censoring, optional
        Public limits of every record's weighted term. Alone, with all weights 1, it makes the
        result strict: its ε is the width of the limits, for every database, if limits, model and a
        proper prior were fixed without looking at the records. Weights go inside the limits, and
        the result is then strict only with ``fixed_weights``. Beside ``scale``, ``shift`` or
        ``truncate_at``, whose weights react to all records, it never is.
    fixed_weights : bool, default False
        That the ``weights`` are fixed numbers, or functions each of its own record and of public
        things, as :func:`ppm.public_weights` gives them. It cannot be seen in the numbers: whoever
        says so vouches for it. Every ε for all databases needs it, with ``censor`` or without.
    **model_settings
        For a PyMC model only: settings of :class:`ppm.PyMCSynthesizer`, such as ``chains``,
        ``warmup`` or ``target_accept``.

    Raises
    ------
    TypeError
        If ``synthesizer`` does not follow the protocol :class:`ppm.Synthesizer`, its ``fit`` takes
        no ``censor`` where one is given, or ``model_settings`` are given for one that has its own.
    ValueError
        If a setting is out of range, weights are given together with a rule for them, or
        ``fixed_weights`` without weights.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3. Censoring is not in the paper.

    Examples
    --------
    >>> import ppm
    >>> mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([3, 5, 4, 6, 20]))
    >>> result = mechanism.run(draws=200, random_seed=1)
    >>> float(result.weights[4])
    0.0
    >>> bool(result.epsilon() < ppm.epsilon(ppm.local_bound(
    ...     result.synthesizer.log_likelihood(result.unweighted))))
    True
    >>> strict = ppm.PseudoPosteriorMechanism(
    ...     ppm.GammaPoisson([3, 5, 4, 6, 20], shape=2, rate=0.4), censor=ppm.Censoring(-3, -1)
    ... ).run(draws=200, random_seed=1)
    >>> strict.guarantee.kind, strict.epsilon(releases=3)
    ('strict', 6.0)
    """

    def __init__(
        self, synthesizer, *, scale=None, shift=None, truncate_at=None, weights=None, censor=None,
        fixed_weights=False, **model_settings,
    ):
        self.synthesizer = as_synthesizer(synthesizer, **model_settings)
        # what was asked for by name reacts to all records, also where it is the default
        self.rule = {
            name: check_number(name, value, above=None if name == "shift" else 0)
            for name, value in (("scale", scale), ("shift", shift), ("truncate_at", truncate_at))
            if value is not None
        }
        if weights is not None:
            if self.rule:
                raise ValueError("weights replaces scale, shift and truncate_at: leave those out")
            weights = check_weights(weights, self.synthesizer.records)
        self.censor = check_censor(self.synthesizer, censor)
        fixed_weights = check_flag("fixed_weights", fixed_weights)
        if fixed_weights and weights is None:
            raise ValueError(
                "fixed_weights says that given weights react to no other record: give it together "
                "with weights"
            )
        if censor is not None and weights is None and not self.rule:
            weights, fixed_weights = np.ones(self.synthesizer.records), True
        self.weights, self.own_weights = weights, fixed_weights

    def run(
        self,
        *,
        draws=1000,
        random_seed=None,
        unweighted=None,
        allow_disagreement=False,
        progress=False,
    ):
        """Fit, weigh, refit and bound.

        Parameters
        ----------
        draws : int, default 1000
            Kept draws a chain of each fit, 1 or more.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness; the two fits get independent streams of it.
        unweighted : xarray.DataTree, optional
            The ``unweighted`` fit of an earlier run on the same records, to save the first fit.
            Refused where weights are given, or all 1 under ``censor`` alone: nothing would use it.
        allow_disagreement : bool, default False
            Show bounds and ε even where chains disagree, marked as such. Under limits with weights
            of the records' own the result is then strict whatever the chains do, and its guarantee
            says that nothing was gated by the records. **Decide it before the first fit of the
            confidential records**, with the length of the chains, by a public table: a second run
            after one that was withheld is gated by it.
        progress : bool, default False
            Whether the synthesizer shows how far it is.

        Returns
        -------
        MechanismResult
            Weights, bounds and draws.

        Warns
        -----
        UserWarning
            If the limits of ``censor`` lie where no record's term moves.

        Raises
        ------
        ValueError
            If an argument is out of range, ``unweighted`` is a fit of other records, or a
            log-likelihood holds NaN.
        """
        draws = check_count("draws", draws)
        allow_disagreement = check_flag("allow_disagreement", allow_disagreement)
        if unweighted is not None:
            if self.weights is not None:
                raise ValueError(
                    "unweighted is a fit that weights are computed from, and here none are: leave "
                    "it out"
                )
            check_fit(self.synthesizer, unweighted, "unweighted")
        first, second = streams(random_seed, 2)
        weights, before = self.weights, None
        if weights is None:
            if unweighted is None:
                unweighted = self.synthesizer.fit(
                    draws=draws, random_seed=first, progress=progress
                )
            before = _read(self.synthesizer, unweighted)
            weights = record_weights(before[0].bounds, **self.rule)
        return refit(
            self.synthesizer, weights, draws=draws, random_seed=second, unweighted=unweighted,
            allow_disagreement=allow_disagreement, censor=self.censor,
            own_weights=self.own_weights, before=before, progress=progress,
        )


def refit(
    synthesizer, weights, *, draws, random_seed, unweighted=None, allow_disagreement=False,
    censor=None, own_weights=False, before=None, **settings,
):
    """Fit with checked weights, and bound: steps 2a-c, for the library's own audits.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer
        The model.
    weights : numpy.ndarray, shape (records,)
        Weights α, 0 or more.
    draws : int
        Kept draws a chain, 1 or more.
    random_seed : int, SeedSequence or Generator
        Source of randomness.
    unweighted, allow_disagreement
        As for :func:`bound_fit`.
    censor : ppm.Censoring, optional
        Public limits of every record's term.
    own_weights : bool, default False
        Whether no weight reacts to another record.
    before : tuple, optional
        What was read of the unweighted fit already.
    **settings
        Of the synthesizer's ``fit``, such as ``initial`` or ``progress``.

    Returns
    -------
    MechanismResult
        Weights, bounds, diagnostics and draws.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, steps 2a-c.
    """
    if censor is not None:
        settings["censor"] = censor
    fit = synthesizer.fit(weights, draws=draws, random_seed=random_seed, **settings)
    return _bound(
        synthesizer, fit, weights, unweighted, allow_disagreement, censor, own_weights, before
    )


def bound_fit(synthesizer, fit, weights, *, unweighted=None, allow_disagreement=False):
    """Bounds of a fit that exists already: step 2b-c on its own.

    For fits without censoring: those of a censored fit are not the bounds of its terms, and a
    strict result comes from a run of the mechanism only.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model that was fitted.
    fit : xarray.DataTree
        What its ``fit`` returned for these weights.
    weights : array_like, shape (records,)
        Weights α, 0 or more.
    unweighted : xarray.DataTree, optional
        The fit that gave the weights.
    allow_disagreement : bool, default False
        Show bounds and ε even where the chains behind them disagree, marked as such.

    Returns
    -------
    MechanismResult
        Weights, bounds, diagnostics and draws.

    Raises
    ------
    TypeError
        If ``synthesizer`` is neither a synthesizer nor a PyMC model.
    ValueError
        If the weights are out of range, a fit is one of other records, or a log-likelihood holds
        NaN.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, steps 2b-c.

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
    check_fit(synthesizer, fit, "fit")
    if unweighted is not None:
        check_fit(synthesizer, unweighted, "unweighted")
    return _bound(synthesizer, fit, weights, unweighted, allow_disagreement)


def _bound(
    synthesizer, fit, weights, unweighted, allow_disagreement, censor=None, own_weights=False,
    before=None,
):
    found, diagnostics = _read(synthesizer, fit, weights, censor)
    oscillation = float(found.oscillations.max())
    # where warnings are errors this one would gate a release that nothing should
    ungated = allow_disagreement and own_weights
    if censor is not None and np.any(weights) and not ungated:
        warn_if_nothing_moves(censor, oscillation)
    if unweighted is not None and before is None:
        before = _read(synthesizer, unweighted)
    first, first_diagnostics = before or (None, None)
    return MechanismResult(
        weights=weights,
        _bounds=found.bounds,
        _oscillation=oscillation,
        draws_used=found.largest.size,
        diagnostics=diagnostics,
        unweighted_diagnostics=first_diagnostics,
        allow_disagreement=bool(allow_disagreement),
        draws=fit,
        unweighted=unweighted,
        synthesizer=synthesizer,
        _unweighted_bound=np.nan if first is None else float(first.bounds.max()),
        censor=censor,
        own_weights=own_weights,
    )


def _read(synthesizer, fit, weights=None, censor=None):
    """Bounds, and the chains compared, from one reading: a log-likelihood may be slow to read."""
    log_lik = synthesizer.log_likelihood(fit)
    several = getattr(log_lik, "sizes", {}).get("chain", 1) > 1
    compared = several or not getattr(synthesizer, "independent_draws", False)
    found = read_once(log_lik, weights, censor=censor, by_draw=compared)
    if not compared:
        return found, None
    stats, both = fit.get("sample_stats"), (found.maxima, found.total)
    return found, compare_chains(
        *both, weights=found.weights, sample_stats=stats, total_decides=censor is not None
    )


def _how_to_run_longer(synthesizer):
    """Where to set warm-up and chains, for a synthesizer that has both."""
    warmup, chains = (getattr(synthesizer, name, None) for name in ("warmup", "chains"))
    if warmup is None or chains is None:
        return ""
    # whoever handed over a bare PyMC model must wrap it to set these
    bare = hasattr(synthesizer, "model")
    call = "ppm.PyMCSynthesizer(model" if bare else f"{type(synthesizer).__name__}(…"
    more = f"warmup={max(1000, 2 * warmup)}, chains={max(4, chains)}"
    return f"; set warm-up and chains by {call}, {more})"
