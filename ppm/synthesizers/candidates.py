"""A finite public set of parameters: exact draws, and bounds that are maxima over all of it."""

import functools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr

from ppm.checks import (
    as_labels,
    check_count,
    check_draws,
    check_flag,
    listed,
)
from ppm.scan import LogLikelihoodScan, scan, sums_by_draw
from ppm.seeds import generator, streams
from ppm.synthesizers.base import Synthesizer, as_synthesizer, log_likelihood_from
from ppm.terms import as_terms


class CandidateSynthesizer(Synthesizer):
    r"""A model whose parameters θ come from a finite public set: drawn exactly, without a chain.

    The prior is uniform on the candidates :math:`\theta_1, \dots, \theta_M`, and :math:`p_k \propto
    \exp \sum_i \ell_i(\theta_k)` the pseudo posterior, with terms :math:`\ell_i = \alpha_i \log
    p(x_i \mid \theta)`, or these between limits. A candidate that is listed twice counts twice.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model: its ``records``, ``log_likelihood_at`` and ``predict``, not its own prior.
    candidates : xarray.DataTree, xarray.Dataset or dict
        **Public** values of all parameters, fixed without looking at the records: a fit to a
        published table, its ``posterior``, or a dict from parameters' names to arrays whose first
        axis counts the candidates. With ``groups`` a dict of one such set for each label. What is
        no parameter is kept in the draws, and has no effect.
    groups : array_like (records,), optional
        **Public** labels of the records; how many records a group has is public with them. Each
        group has its own θ, drawn given its records.
    secure_noise : bool, default False
        Whether OpenDP chooses the candidates, from exact sums of rounded terms and with the
        operating system's randomness: for an actual release, yes. It needs ``censor`` or ``cap``,
        and time for each of the draws: ask for as many as there are to be releases.

    Notes
    -----
    Draws are exact and independent, and bounds, Δ and oscillations exact maxima over the whole set,
    but for rounding. Of one draw it is a total variation of about :math:`2^{-53} (M + n W)`, which
    adds :math:`1 + e^W` times that to δ; with secure noise there is none in the sums.

    *Theorem.* Let each term depend on θ, public values and its own record's value alone, be finite,
    and move by at most W over the set, whatever that value is. Then one draw is W-differentially
    private in both directions for every database; where one value replaces another, 2W.

    *Proof.* Without record i, the probabilities are :math:`q_k \propto \exp \sum_{j \neq i}
    \ell_j(\theta_k)`, because no other term changes, and :math:`\log(p_k / q_k) = \ell_i(\theta_k)
    - \log \sum_l q_l \exp \ell_i(\theta_l)`. The log of a mean lies, like :math:`\ell_i(\theta_k)`,
    between the smallest and the largest :math:`\ell_i`. To replace is to leave out and put in. The
    draws of other groups are independent and do not change, so W is the ε of all groups together.

    Limits of width W meet the condition, and so do the weights :math:`\min(1, W /
    \text{oscillation}_i)` of ``cap`` in :class:`ppm.PseudoPosteriorMechanism`. The weights of
    :func:`ppm.record_weights` and :func:`ppm.scalar_weights` do not, since the bounds of all
    records enter each; nor does anything that was chosen by looking at the records. NaN counts as
    -inf; a record that some candidates make impossible has weight 0 under a cap, so that one
    candidate outside the model's range can silence all records. In many dimensions a finite set is
    too coarse to learn from.

    *Secure noise.* A record's term, less the lower limit (under a cap less its own smallest value),
    is rounded to one of the :math:`N + 1` multiples of :math:`W / N`, with :math:`N = \lfloor
    2^{50} / n \rfloor`. Sums of these whole numbers are exact in any order, and no rounding can
    lead below 0 or above N. To leave a record out therefore lowers all scores, each by between 0
    and N: OpenDP's *monotonic* :math:`l_\infty` distance N, which bounds the range of the change.
    (To replace it moves them in both directions, a range of 2N.) At the smallest scale s at which
    OpenDP's own map still grants :math:`\epsilon = W` for that distance, its noisy maximum has
    Gumbel noise, which chooses k with probability proportional to :math:`\exp(\text{score}_k /
    s)`, the pseudo posterior of the rounded terms itself; the theorem gives it :math:`N / s \leq
    W`, and OpenDP's map the matching :math:`\rho = W^2 / 8`. Exponential noise (permute and flip)
    has the same ε by the same map, but prefers high scores more: it is another choice than the
    posterior's. ``random_seed`` then fixes predictions alone. As in
    :func:`ppm.histogram_release`, not all proofs of OpenDP's ``contrib`` have been reviewed.

    Examples
    --------
    A normal distribution for each of two groups, on a grid of its mean and scale:

    >>> import numpy as np, ppm
    >>> mean, scale = map(np.ravel, np.meshgrid(np.linspace(-3, 3, 61), np.geomspace(0.5, 2, 9)))
    >>> grid = {"pi": np.ones((549, 1)), "beta": mean[:, None, None], "sigma": scale[:, None]}
    >>> normal = ppm.FiniteMixture([0.4, -0.2, 1.1, 2.3, 1.9], np.ones((5, 1)), components=1)
    >>> two = ppm.CandidateSynthesizer(normal, {"a": grid, "b": grid}, groups=list("aaabb"))
    >>> result = ppm.PseudoPosteriorMechanism(two, cap=1.0).run(random_seed=1)
    >>> two.public_set, result.guarantee.headline
    ('1,098 candidates of the parameters, in 2 groups of records',
     'strict: epsilon 1 for one release, for every database')
    """

    # no Markov chain, so nothing to diagnose
    independent_draws = True
    takes_limits = True
    _public = ("synthesizer", "public_set", "secure_noise")

    def __init__(self, synthesizer, candidates, *, groups=None, secure_noise=False):
        synthesizer = as_synthesizer(synthesizer)
        self.synthesizer, self.records = synthesizer, synthesizer.records
        self.secure_noise = check_flag("secure_noise", secure_noise)
        # sums of as many whole numbers are exact in floating point, and so is each of them
        self._steps = 2**50 // self.records
        self._rows, self._sets = _by_group(candidates, groups, self.records)
        # of records that stand group by group
        places = [np.arange(self.records)[rows] for rows in self._rows.values()]
        self._order = np.argsort(np.concatenate(places))
        self._candidates = sum([one.sizes["draw"] for one in self._sets.values()])
        for label, one in self._sets.items():
            of = "" if groups is None else f" of {label!r}"
            synthesizer.check_parameters(f"candidates{of}", one)
            try:
                self._at(one.isel(draw=[0]))
            except NotImplementedError:
                raise TypeError(
                    "synthesizer must have log_likelihood_at, as ppm.GammaPoisson(…) has"
                ) from None
            except (IndexError, KeyError, TypeError, ValueError):
                raise ValueError(
                    "candidates must hold values of every parameter of the model, by "
                    f"its name and in its shape; got {listed([*one])}"
                ) from None

    def __getstate__(self):
        """What is pickled: not log-likelihoods, which may be large, or blocks yet to be read."""
        return {
            name: value for name, value in vars(self).items() if name != "_log_liks"
        }

    def check_own_terms(self):
        """Refuse a model in which a record is seen to reach more than its own term."""
        self.synthesizer.check_own_terms()

    @property
    def public_set(self):
        """What is public about the parameters, in words."""
        groups = (
            f", in {len(self._sets)} groups of records" if len(self._sets) > 1 else ""
        )
        return f"{self._candidates:,} candidates of the parameters{groups}"

    def fit(self, terms=None, *, draws=1000, random_seed=None, progress=None):
        """Draw candidates independently with their :meth:`probabilities`, in one chain.

        Arguments as for :meth:`ppm.Synthesizer.fit`. With groups, parameters have the further
        dimension ``group``.
        """
        draws, rng = check_count("draws", draws), generator(random_seed)
        terms = as_terms(terms, self.records)
        totals = self._totals(terms)
        if self.secure_noise:
            choose = noisy_maximum(self._steps, terms.width)
            chosen = [
                [choose(t.astype(np.int64).tolist()) for _ in range(draws)]
                for t in totals.values()
            ]
        else:
            chosen = [
                rng.choice(t.size, size=draws, p=_softmax(t)) for t in totals.values()
            ]
        return self.fit_of(self._picked(chosen))

    def _picked(self, chosen):
        """The posterior that has these places of each group's candidates."""
        drawn = [
            one.isel(draw=places)
            for one, places in zip(self._sets.values(), chosen, strict=True)
        ]
        labels = pd.Index(
            list(self._sets), dtype=object, name="group", tupleize_cols=False
        )
        posterior = drawn[0] if None in self._sets else xr.concat(drawn, labels)
        return posterior.assign_coords(
            chain=[0], draw=np.arange(posterior.sizes["draw"])
        )

    def _points(self, number):
        number = min(number, *[one.sizes["draw"] for one in self._sets.values()])
        return self._picked([np.arange(number)] * len(self._sets))

    def _log_prior_at(self, posterior):
        """The candidates and the groups, all of them."""
        found = {
            f"{name} (candidates of {label})": array.values
            for label, one in self._sets.items()
            for name, array in one.items()
        }
        everyone = np.arange(self.records)
        rows = {f"group {label}": everyone[rows] for label, rows in self._rows.items()}
        return found | rows

    def probabilities(self, terms=None):
        """Probabilities p of the candidates, (candidates,); with groups a dict of these by label.

        ``terms`` are :class:`ppm.Terms`, or weights (records,), all 1 by default.
        """
        terms = as_terms(terms, self.records)
        nats = terms.width / self._steps if self.secure_noise else 1.0
        chances = {
            label: _softmax(total * nats)
            for label, total in self._totals(terms).items()
        }
        return chances.get(None, chances)

    def _totals(self, terms):
        """Sums of terms at each group's candidates, by label.

        In nats up to a constant or, for secure noise, in whole steps.
        """
        if terms.limits is not None:
            self.check_own_terms()
        if self.secure_noise and terms.width == np.inf:
            raise ValueError(
                "secure_noise needs terms of a public width: a run with censor= "
                "or cap=, without scale, shift and truncate_at"
            )
        totals = {}
        for label, log_lik in self._log_liks.items():
            function = self._measured(terms.of(self._rows[label]), log_lik)
            totals[label] = sums_by_draw(log_lik, function)[0]
            if not np.isfinite(totals[label].max()):
                raise ValueError(
                    "candidates must hold one that makes no record of positive weight "
                    "impossible, and none with an infinite density; or give censor="
                )
        return totals

    def _measured(self, terms, log_lik):
        """Function of log-likelihoods and their records: terms, from a level of their own.

        Any level changes no probability, and sums of large numbers would lose small differences.
        """
        if terms.limits is None:
            first = log_lik[0, 0].values
            return replace(terms, levels=np.where(np.isfinite(first), first, 0.0))
        if not self.secure_noise:
            return terms.above_low
        steps = self._steps / terms.width
        # up to 2**50 steps the products' rounding is less than half a step
        return lambda values, rows: np.rint(terms.above_low(values, rows) * steps)

    def extremes(self, terms=None):
        """Exact ``bounds`` and ``oscillations`` (records,) of terms over all candidates, in nats.

        ``terms`` as for :meth:`probabilities`. The result has the records' ``lowest`` and
        ``highest`` log p too.
        """
        terms = as_terms(terms, self.records)
        scans = [
            scan(self._log_liks[label], terms.of(rows))
            for label, rows in self._rows.items()
        ]
        lowest, highest = (
            np.concatenate([getattr(found, name) for found in scans])[self._order]
            for name in ("lowest", "highest")
        )
        maxima = np.concatenate([found.draw_maxima.ravel() for found in scans])
        return LogLikelihoodScan(
            terms=terms,
            lowest=lowest,
            highest=highest,
            draw_maxima=maxima,
            draw_sums=None,
        )

    def read(self, fit, terms=None):
        """The :meth:`extremes`, whatever the fit."""
        return self.extremes(terms)

    def candidates_drawn(self, fit):
        """Number of different candidates among a fit's draws; with groups a list of these.

        One or a few, for many draws, can mean that the set is too coarse, or in the wrong place.
        The number is computed from all draws of the fit, and to publish it costs the ε of all.
        """
        numbers = []
        for own in self._apart(fit["posterior"].to_dataset()):
            columns = [
                drawn.transpose("chain", "draw", ...).values.reshape(
                    own.sizes["draw"], -1
                )
                for drawn in own.values()
            ]
            numbers.append(len(np.unique(np.column_stack(columns), axis=0)))
        return numbers[0] if None in self._rows else numbers

    def log_likelihood_at(self, posterior):
        """Log-likelihood of records at draws of their group's θ: see :class:`ppm.Synthesizer`."""
        return self._together([self._at(own) for own in self._apart(posterior)])

    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic databases (release, record), each group's from a draw of its own θ."""
        releases = check_count("releases", releases)
        # a level below the streams that the mechanism makes of the same seed
        seeds = streams(*streams(random_seed, 1), len(self._sets))
        return self._together(
            [
                self.synthesizer.predict(
                    xr.DataTree.from_dict({"posterior": own}),
                    releases=releases,
                    random_seed=seed,
                )
                for own, seed in zip(
                    self._apart(fit["posterior"].to_dataset()), seeds, strict=True
                )
            ]
        )

    def _apart(self, posterior):
        """The posterior of each group's θ."""
        if isinstance(posterior, dict):
            return [posterior[label] for label in self._rows]
        shared = None in self._rows or "group" not in posterior.dims
        return [
            posterior if shared else posterior.sel(group=label, drop=True)
            for label in self._rows
        ]

    def _together(self, found):
        """Of arrays for all records, one for each group, the columns of the group's own records."""
        own = map(
            lambda array, rows: array.isel(record=rows), found, self._rows.values()
        )
        return xr.concat(own, "record").isel(record=self._order)

    def _at(self, posterior):
        def evaluate(draws):
            log_lik = self.synthesizer.log_likelihood_at(draws).transpose(
                "chain", "draw", ...
            )
            # in this thread, which alone may compute
            values = log_lik.compute(scheduler="synchronous").values.astype(np.float64)
            return np.where(np.isnan(values), -np.inf, values)

        return log_likelihood_from(evaluate, posterior, self.records)

    @functools.cached_property
    def _log_liks(self):
        """Log-likelihoods of each group at its candidates: held if small, else read in blocks."""
        return {
            label: self._at(self._sets[label]).isel(record=rows)
            for label, rows in self._rows.items()
        }


def noisy_maximum(distance, epsilon):
    """OpenDP's choice of a place in a list of whole scores, with probabilities like exp(score / s).

    The scale s is the smallest at which OpenDP, which rounds ε upwards, grants ``epsilon`` where a
    record lowers all scores by up to ``distance``, or raises all: see the class above.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    scores = (
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64", monotonic=True),
    )
    scale = dp.binary_search_param(
        lambda scale: scores >> dp.m.then_noisy_max(dp.max_divergence(), scale),
        d_in=distance,
        d_out=epsilon,
        bounds=(0.5 * distance / epsilon, 2.0 * distance / epsilon),
    )
    # for this measure of divergence OpenDP's noise is Gumbel's
    return scores >> dp.m.then_noisy_max(dp.zero_concentrated_divergence(), scale)


def _softmax(totals):
    shares = np.exp(totals - totals.max())
    return shares / shares.sum()


def _by_group(candidates, groups, records):
    """Rows and candidates of each group that has records, by label; of all by None."""
    if groups is None:
        return {None: slice(None)}, {None: check_draws("candidates", candidates)}
    labels = as_labels("groups", groups, records)
    rows = pd.Series(labels).groupby(labels).indices
    if not isinstance(candidates, Mapping):
        raise ValueError(
            "candidates must be a dict with one set for each label in groups; got "
            f"{type(candidates).__name__}"
        )
    if lacking := [label for label in rows if label not in candidates]:
        plain = [
            [getattr(one, "item", lambda one=one: one)() for one in those]
            for those in (rows, candidates)
        ]
        kinds = [
            " and ".join(sorted({type(one).__name__ for one in those}))
            for those in plain
        ]
        types = (
            ""
            if kinds[0] == kinds[1]
            else f"; labels are {kinds[0]}, keys are {kinds[1]}"
        )
        # where none fits, they may be no labels, but values
        which = listed(lacking) if len(lacking) < len(rows) else "any label"
        raise ValueError(
            "candidates must be a dict with one set for each label in groups: none "
            f"for {which}, its keys are {listed([*candidates])}{types}"
        )
    sets = {label: check_draws("candidates", candidates[label]) for label in rows}
    if any(["group" in one.dims for one in sets.values()]):
        raise ValueError(
            "candidates must have no dimension group, which is that of their groups: "
            "rename it"
        )
    shapes = {
        label: {name: x.shape[2:] for name, x in one.items()}
        for label, one in sets.items()
    }
    first, *others = shapes
    if unlike := [label for label in others if shapes[label] != shapes[first]]:
        raise ValueError(
            "candidates must have the same parameters in every group, in the same "
            f"shapes: those of {listed(unlike)} are not like those of {first!r}"
        )
    return rows, sets
