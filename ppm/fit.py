"""The pseudo posterior mechanism: a model, a rule and draws; bounds, ε and releases follow."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import xarray as xr

from ppm import pdp
from ppm.bounds import Extremes, blocks_of, extremes, size_of
from ppm.candidates import Candidates
from ppm.chains import BoundDiagnostics, ChainsDisagreeError, diagnose
from ppm.checks import Brief, as_array, check_count, check_flag, listed, refuse_masked
from ppm.model import Model
from ppm.rules import Capped, Limited, Rule, Unweighted
from ppm.seeds import copied, generator
from ppm.terms import Terms

__all__ = ["Fit", "fit"]

# two computations of one log p agree as far, absolute and relative
_ROUNDING = 1e-6
# draws at which the model of a known fit is compared
_SOME = 20


def fit(
    model,
    rule,
    *,
    draws=1000,
    random_seed=None,
    known=None,
    allow_disagreement=False,
    **sampler,
):
    """The pseudo posterior mechanism: draw θ from prior × exp Σ ℓᵢ, with the terms of a rule.

    Savitsky, Williams and Hu (2022), section 3, steps 1 and 2.

    Parameters
    ----------
    model : ppm.Model
        The model, with the confidential records.
    rule : ppm.Rule or ppm.Terms
        What each record adds: ``ppm.ByRisk()`` is the paper's rule. With terms, which are
        confidential, nothing is strict.
    draws : int, default 1000
        Draws to keep, of each chain.
    random_seed : int, SeedSequence, Generator or None
        Give none for real records.
    known : dict, optional
        Fits of this model that there are already, with as many draws, by their rule: they are not
        made again.
    allow_disagreement : bool, default False
        Show bounds, ε and releases even where chains disagree.
    **sampler
        Settings of the model's sampler, such as ``thin``, for every fit.

    Returns
    -------
    ppm.Fit

    Raises
    ------
    TypeError
        If these are no model and no rule, or the model takes no limits.
    ValueError
        If another argument is wrong, or the model's draws or its log p.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> fit = ppm.fit(model, ppm.ByRisk(scale=0.9), draws=200, random_seed=1)
    >>> fit.unweighted.local_bound > fit.local_bound
    True
    >>> fit.release(2, random_seed=2).values
    array([[ 5,  7, 10,  4, 13],
           [ 3,  9,  3,  2, 10]])
    """
    _check_model(model)
    if not isinstance(rule, Rule | Terms):
        raise TypeError(
            "rule must be a ppm.Rule, such as ppm.ByRisk(), or ppm.Terms(weights); got "
            f"{_class_or_type(rule)}"
        )
    _check_hashable(rule)
    allow = check_flag("allow_disagreement", allow_disagreement)
    draws = check_count("draws", draws)
    known = _checked_known(model, known, draws)
    fits = _Fits(model, draws, copied(random_seed), known, sampler)
    if isinstance(rule, Terms):
        made = fits.of_terms(rule, fits.root)
    else:
        made = fits.of_rule(rule, fits.of_last)
    # what a rule may read is withheld from others
    behind = {
        what: replace(one_fit, allow_disagreement=allow)
        for what, one_fit in made.behind.items()
    }
    return replace(made, behind=behind, allow_disagreement=allow)


class _Fits:
    """The fits of one call, each made once: by their rule, or by their terms and draws."""

    def __init__(self, model, draws, root, known, sampler):
        self.model, self.draws, self.sampler, self.root = model, draws, sampler, root
        self.others = copied(root)
        self.of_unweighted, self.of_last = self.others.spawn(2)
        self.by_rule = {
            rule: replace(one_fit, allow_disagreement=True)
            for rule, one_fit in known.items()
        }
        self.by_terms, self.under_way = {}, []

    def of_rule(self, rule, seed=None):
        """The fit of a rule, with the fits that it asked for behind it."""
        if rule in self.under_way:
            raise ValueError(f"{type(rule).__name__} asks for its own fit")
        if rule not in self.by_rule:
            self.under_way.append(rule)
            self.by_rule[rule] = self._make(rule, seed)
            self.under_way.pop()
        return self.by_rule[rule]

    def _make(self, rule, seed):
        behind = {}

        def ask(what, *, draws=None, trial=False, **settings):
            if isinstance(what, Rule):
                _check_hashable(what)
                if draws is not None or settings:
                    raise TypeError(
                        "draws and settings of a sampler are for fits under terms: another "
                        "rule is fitted with those of ppm.fit"
                    )
                one_fit = self.of_rule(what)
            elif isinstance(what, Terms):
                one_fit = self.of_terms(what, draws=draws, **settings)
            else:
                raise TypeError(
                    f"fit takes a ppm.Rule or ppm.Terms; got {_class_or_type(what)}"
                )
            if not trial:
                behind.update(one_fit.behind | {what: one_fit})
            return one_fit

        terms = rule.terms(self.model, ask)
        if not isinstance(terms, Terms) or terms.records != self.model.records:
            raise ValueError(
                f"terms of {type(rule).__name__} must be ppm.Terms of the "
                f"{self.model.records} records"
            )
        seed = self.of_unweighted if rule == Unweighted() else seed
        return replace(self.of_terms(terms, seed, rule=rule), behind=behind)

    def of_terms(self, terms, seed=None, *, draws=None, rule=None, **settings):
        draws = self.draws if draws is None else check_count("draws", draws)
        if (terms, draws) not in self.by_terms:
            (seed,) = self.others.spawn(1) if seed is None else (seed,)
            self.by_terms[terms, draws] = _drawn(
                self.model, terms, draws, seed, rule, self.sampler | settings
            )
        return replace(self.by_terms[terms, draws], rule=rule)


def _drawn(model, terms, draws, seed, rule, settings):
    """The fit that draws of θ under these terms are."""
    if terms.records != model.records:
        raise ValueError(
            f"terms must be of the model's {model.records} records; got {terms.records}"
        )
    if terms.limits is not None and type(model) is not Candidates:
        raise TypeError(
            f"{type(model).__name__} takes no limits: put it on a finite public set of "
            "parameters, ppm.Candidates(model, candidates)"
        )
    if _strict(model, rule):
        model.check_own_terms()
    theta = model.draw(terms, draws, np.random.default_rng(seed), **settings)
    chains = model.chains or 1
    theta, stats = _checked_draws(model, theta, draws * chains)
    if isinstance(model, Candidates):
        read = model.extremes(terms)
        shape = (1, -1)
    else:
        read = extremes(blocks_of(model, theta), draws * chains, terms)
        shape = (chains, draws)
    maxima, diagnostics = read.maxima.reshape(shape), None
    if model.chains is not None:
        sums, diverging = read.sums.reshape(shape), stats.get("diverging")
        diagnostics = diagnose(maxima, sums, terms.weights, diverging)
    return Fit(
        model=model,
        rule=rule,
        terms=terms,
        theta=theta,
        sample_stats=stats,
        draws=draws,
        diagnostics=diagnostics,
        _extremes=read,
        _maxima=maxima,
    )


def _strict(model, rule):
    """Whether the width of the terms is an ε of one exact draw, for every database.

    By type: a subclass of a rule may take its weights from all records, one of the model may draw
    otherwise, and attributes may say anything.
    """
    return type(rule) in (Limited, Capped) and type(model) is Candidates


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Fit(Brief):
    """A model, its records' terms, and draws of θ; bounds, ε and releases follow from these.

    What :meth:`release` returns is meant for release; everything else was computed from the
    confidential records. Bounds, ε and releases raise a :class:`ppm.ChainsDisagreeError` where the
    chains disagree, stand still or diverge often, unless the fit had ``allow_disagreement=True``.
    On :class:`ppm.Candidates` bounds are exact maxima over the whole set.

    Attributes
    ----------
    model : ppm.Model
        The model, with the confidential records.
    rule : ppm.Rule or None
        The rule of its terms; None where terms were given.
    terms : ppm.Terms
        What each record adds: its weight, and limits if there are any.
    theta : dict
        Draws of θ, arrays (draws, …) by name, chain after chain.
    sample_stats : dict
        What the sampler says of its draws, by name.
    draws : int
        Draws of each chain.
    diagnostics : ppm.chains.BoundDiagnostics or None
        What the chains say of each other, for whoever looks for a fault: their bounds are among it,
        also where the fit withholds its own. None for exact, independent draws.
    behind : dict
        The fits that the rule asked for, by their rule, or by their terms.
    allow_disagreement : bool
        Whether numbers are shown, and releases made, even where chains disagree.

    Examples
    --------
    >>> import ppm
    >>> fit = ppm.fit(ppm.GammaPoisson([3, 5, 4, 6, 20]), ppm.ByRisk(), draws=200, random_seed=1)
    >>> fit.weights.round(2), round(fit.local_bound, 1), round(fit.epsilon(releases=3), 1)
    (array([0.82, 0.96, 0.9 , 1.  , 0.  ]), 3.6, 21.6)
    """

    model: Model
    rule: Rule | None
    terms: Terms
    theta: dict
    sample_stats: dict
    draws: int
    diagnostics: BoundDiagnostics | None
    behind: dict = field(default_factory=dict)
    # a rule may read what it asked for; the faults go along
    allow_disagreement: bool = True
    _extremes: Extremes
    _maxima: np.ndarray
    # the m of each call of release(), so that a later one knows of the earlier ones
    _released: list = field(default_factory=list)

    _public = ("model", "rule", "terms", "draws", "allow_disagreement")

    @property
    def strict(self):
        """Whether ε is a public constant that holds for every database.

        It is where the rule is the library's own :class:`ppm.Limited` or :class:`ppm.Capped` and
        the model :class:`ppm.Candidates`, which draws exactly from exactly these terms. Rule,
        model, candidates and groups must have been fixed without looking at the records. Of a model
        of your own you assert two things more: a value reaches its own record's term alone
        (:func:`ppm.models.own_terms.check` tries it), and predictions are made of θ and public
        values.
        """
        return _strict(self.model, self.rule)

    @property
    def weights(self):
        """Weights α (records,)."""
        return self.terms.weights

    @property
    def unweighted(self):
        """The unweighted fit, if the rule asked for one, or None."""
        return self.behind.get(Unweighted())

    @property
    def faults(self):
        """What is wrong with the chains of this fit, and of those behind it."""
        return [
            f"{_name_of(one_fit.rule)}: {fault}"
            for one_fit in (*self.behind.values(), self)
            if one_fit.diagnostics is not None
            for fault in one_fit.diagnostics.faults
        ]

    @property
    def chains_agree(self):
        """Whether the chains of this fit, and of those behind it, are without faults."""
        return not self.faults

    def _agreed(self):
        if self.faults and not self.allow_disagreement:
            raise ChainsDisagreeError(
                f"the bound is withheld because of its chains: {'; '.join(self.faults)}; "
                "ppm.fit(…, allow_disagreement=True) shows the numbers, marked"
            )
        return self._extremes

    @property
    def draws_used(self):
        """Number S of draws, all chains together, or of candidates that the maximum is over."""
        return self._maxima.size

    @property
    def record_bounds(self):
        """Largest absolute term of each record, in nats: see :func:`ppm.record_bounds`."""
        read = self._agreed()
        return self.terms.bounds(read.lowest, read.highest)

    @property
    def local_bound(self):
        """Local Lipschitz bound Δ, the largest record bound, in nats.

        Of a strict fit it is only a diagnostic: there ε is the width of the terms.
        """
        return float(self.record_bounds.max())

    @property
    def record_oscillations(self):
        """Range of each record's terms, in nats: see :func:`ppm.record_oscillations`."""
        read = self._agreed()
        return self.terms.oscillations(read.lowest, read.highest)

    @property
    def oscillation_bound(self):
        """Largest oscillation of a record, in nats: see :func:`ppm.oscillation_bound`."""
        return float(self.record_oscillations.max())

    @property
    def draw_maxima(self):
        """Largest absolute term of each draw (chains, draws), in nats; Δ is the largest of these.

        On candidates (1, candidates).
        """
        self._agreed()
        return self._maxima

    @property
    def ends(self):
        """θ where each chain ended, (chains, …)."""
        return {
            name: values[self.draws - 1 :: self.draws]
            for name, values in self.theta.items()
        }

    @property
    def posterior(self):
        """Draws of θ by the model's names, an `xarray.Dataset` (chain, draw, …). Confidential."""
        chains = self.model.chains or 1
        arrays = {
            name: values.reshape(chains, self.draws, *values.shape[1:])
            for name, values in self.theta.items()
        }
        return _named(self.model, arrays, ("chain", "draw"))

    def draws_charged(self, releases=1):
        r"""Number of different draws of θ that m releases of this fit come from, at most.

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
        return min(check_count("releases", releases), size_of(self.theta))

    def epsilon(self, releases=1):
        """ε of m releases, in nats.

        With the number k of different draws of θ behind them, :meth:`draws_charged`, which is m
        unless the fit has fewer draws: for a strict fit kW, with the width W that the terms are
        really cut to, which may be published (for (ε, δ) see
        :func:`ppm.pdp.bounded_range_epsilon`, with k releases). Otherwise it is the local 2Δk,
        which was computed from the records and is confidential.
        """
        draws = self.draws_charged(releases)
        if self.strict:
            return pdp.bounded_range_epsilon(self.terms.width, draws)
        return pdp.epsilon(self.local_bound, draws)

    def release(self, releases, *, predictions=1, random_seed=None):
        """Draw m synthetic databases from the pseudo posterior predictive distribution (step 3).

        Each comes from one draw of θ, which is chosen here, different ones while they last, so that
        a model cannot use two. Give no ``random_seed`` for real records: anyone who knows it can
        subtract the noise.

        With ``predictions`` above 1 so many databases are predicted from each draw of θ, at no
        further ε, along a dimension ``prediction`` after ``release``.

        Returns
        -------
        xarray.DataArray (release, record, …) or xarray.Dataset
            A dataset of such arrays if the model has several responses. It has as many records as
            are confidential, a public number. Its attributes are ``releases`` and, if the fit is
            strict, ``epsilon``, what this call costs by itself, and ``epsilon_total``, what all
            calls of this fit up to this one cost together: less than their sum once every draw of
            the fit is paid for. A pickled copy of this fit counts by itself from then on.
        """
        releases = check_count("releases", releases)
        predictions = check_count("predictions", predictions)
        self._agreed()
        rng, many = generator(random_seed), size_of(self.theta)
        chosen = rng.choice(many, size=releases, replace=releases > many)
        # one call for each database, with one θ and no other
        databases = [
            self._predicted(place, rng) for place in chosen for _ in range(predictions)
        ]
        shapes = [{name: y.shape for name, y in one.items()} for one in databases]
        if any(one != shapes[0] for one in shapes):
            raise ValueError(
                f"predict of {type(self.model).__name__} must return the same responses, in the "
                "same shapes, for every θ"
            )
        arrays = {
            name: np.stack([database[name] for database in databases])
            for name in databases[0]
        }
        leading = ("release", "record")
        if predictions > 1:
            leading = ("release", "prediction", "record")
            arrays = {
                name: values.reshape(releases, predictions, *values.shape[1:])
                for name, values in arrays.items()
            }
        synthetic = _named(self.model, arrays, leading)
        self._released.append(releases)
        if [*arrays] == [_ONLY]:
            synthetic = synthetic[_ONLY].rename(None)
        synthetic = synthetic.assign_attrs(releases=releases)
        if self.strict:
            synthetic = synthetic.assign_attrs(
                epsilon=self.epsilon(releases),
                epsilon_total=self.epsilon(sum(self._released)),
            )
        return synthetic

    def _predicted(self, place, rng):
        """A synthetic database for the draw at this place, by response."""
        # copies, behind which there are no other draws
        one_theta = {
            name: np.array(values[place]) for name, values in self.theta.items()
        }
        database = self.model.predict(one_theta, rng)
        if not isinstance(database, Mapping):
            database = {_ONLY: database}
        what = f"predict of {type(self.model).__name__}"
        for values in database.values():
            refuse_masked(what, values)
        database = {name: np.array(values) for name, values in database.items()}
        if not database:
            raise ValueError(f"{what} must return a response; got an empty dict")
        for values in database.values():
            if values.shape[:1] != (self.model.records,):
                raise ValueError(
                    f"{what} must return a value for each of the {self.model.records} records; got "
                    f"shape {values.shape}"
                )
            if pd.isna(values).any():
                raise ValueError(
                    f"{what} returned NaN, which is no release: correct the model"
                )
        return database

    def __str__(self):
        """ε of one release, where it comes from, and what the chains say."""
        kind = "LOCAL, confidential"
        if self.strict:
            noise = "" if self.model.secure_noise else "NO "
            kind = f"strict, for every database; {noise}secure noise"
        withheld = self.faults and not self.allow_disagreement
        epsilon = "withheld" if withheld else f"{self.epsilon():.4g} ({kind})"
        draws = "candidates" if isinstance(self.model, Candidates) else "draws"
        lines = [
            f"ε of one release: {epsilon}",
            f"{_name_of(self.rule)}; {self.terms.records:,} records; "
            f"{self.draws_used:,} {draws}",
        ]
        faults = "; ".join(self.faults)
        if withheld:
            lines.append(f"because of its chains: {faults}")
        elif self.diagnostics is None:
            lines.append("R-hat not computed: exact and independent draws")
        else:
            lines += str(self.diagnostics).splitlines()
        if faults and not withheld:
            lines.append(f"CHAINS DISAGREE, shown all the same: {faults}")
        choices = (
            "epsilon may be published if all choices were made without the records; "
        )
        lines.append(
            f"{choices if self.strict else ''}confidential: weights, bounds, diagnostics, "
            "draws and all other numbers above come from the records; only what release() "
            "returns is for release"
        )
        return "\n".join(textwrap.fill(line, 84) for line in lines)

    def summary(self, releases=1):
        """Bounds, ε of one and of m releases, and diagnostics, as a confidential `pandas.Series`.

        R-hat and effective sample size (ESS) are of this fit, divergences of those behind it too;
        NaN where a number does not exist.
        """
        names = {
            "R-hat, largest": "r_hat",
            "ESS, largest": "effective_draws",
            "R-hat, sum": "r_hat_log_likelihood",
            "ESS, sum": "effective_draws_log_likelihood",
        }
        judged = [one.diagnostics for one in (self, *self.behind.values())]
        divergences = [
            one.divergences for one in judged if one and one.divergences is not None
        ]
        first = self.unweighted
        numbers = {
            "Δ, unweighted": first.local_bound if first else np.nan,
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


# the name of a response that a model does not name
_ONLY = "y"


def _named(model, arrays, leading):
    """Arrays with the model's names of dimensions; of coordinates public labels alone."""
    dataset = xr.Dataset()
    groups = []
    if leading[0] == "chain" and isinstance(model, Candidates) and model.labels:
        groups = ["group"]
        labels = np.empty(len(model.labels), dtype=object)
        labels[:] = model.labels
        dataset = dataset.assign_coords(group=("group", labels))
    for name, values in arrays.items():
        further = values.ndim - len(leading) - len(groups)
        names = model.dims.get(
            name, [f"{name}_{axis}" for axis in range(1, further + 1)]
        )
        if len(names) != further:
            raise ValueError(
                f"dims of {type(model).__name__}: {name} has {further} further dimensions, and "
                f"dims names {len(names)} for it; they must agree"
            )
        dataset[name] = (*leading, *groups, *names), values
    # of records there are no labels: they may identify them
    own = {*dataset.dims} - {*leading}
    public = {dim: labels for dim, labels in model.coords.items() if dim in own}
    return dataset.assign_coords(public)


def _checked_draws(model, drawn, size):
    """What ``draw`` returned: finite draws of each parameter (draws, …), and the sample_stats."""
    stats, who = model.sample_stats, f"draw of {type(model).__name__}"
    names = [*drawn] if isinstance(drawn, Mapping) else []
    if not {*stats} < {*names}:
        also = f", and {listed(stats)}" if stats else ""
        raise ValueError(
            f"{who} must return a dict with an array (draws, …) of each parameter by its name"
            f"{also}; got {f'a dict of {listed(names)}' if names else type(drawn).__name__}"
        )
    theta = {}
    for name in names:
        if name in stats:
            continue
        # a copy
        values = np.array(as_array(f"{who}: {name}", drawn[name]))
        if values.shape[:1] != (size,):
            raise ValueError(
                f"{who} must return {size} draws of {name}; got an array of shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise ValueError(f"{who} must return finite numbers for {name}")
        theta[name] = values
    return theta, {name: drawn[name] for name in stats}


def _check_model(model):
    if not isinstance(model, Model):
        raise TypeError(
            "model must be a ppm.Model, such as ppm.GammaPoisson(counts), or one of your own that "
            "inherits from it; a PyMC model goes into ppm.PyMCModel(model); got "
            f"{_class_or_type(model)}"
        )
    name = type(model).__name__
    check_count(f"records of {name}", getattr(model, "records", None))
    if model.chains is not None:
        check_count(f"chains of {name}", model.chains)


def _check_hashable(rule):
    """Refuse a rule under whose name no fit can be kept."""
    try:
        hash(rule)
    except TypeError:
        name = type(rule).__name__
        raise TypeError(
            f"{name} must be hashable: write it as a frozen dataclass, whose fields are numbers, "
            "texts or tuples"
        ) from None


def _checked_known(model, known, draws):
    """Fits by rule, if they are of this model, of these rules and of so many draws."""
    known = {} if known is None else known
    if not isinstance(known, Mapping):
        raise ValueError(
            f"known must be a dict of fits by rule; got {type(known).__name__}"
        )
    for rule, one_fit in known.items():
        if (
            not isinstance(one_fit, Fit)
            or not isinstance(rule, Rule)
            or one_fit.rule != rule
        ):
            raise ValueError(
                f"known must hold fits by their own rule; got {type(one_fit).__name__} "
                f"for {type(rule).__name__}"
            )
        if one_fit.draws != draws:
            raise ValueError(
                f"known must hold fits of {draws} draws; got {one_fit.draws} for "
                f"{type(rule).__name__}"
            )
        if one_fit.model is not model and not _same_records(model, one_fit):
            raise ValueError(
                f"known: the fit of {type(rule).__name__} is of another model or of other "
                "records"
            )
    return dict(known)


def _same_records(model, one_fit):
    """Whether a model is like that of a fit: in its settings, and in log p at some of its draws."""
    other = one_fit.model
    if type(model) is not type(other) or repr(model) != repr(other):
        return False
    if isinstance(model, Candidates) and not model.same_set(other):
        return False
    places = np.linspace(0, size_of(one_fit.theta) - 1, _SOME).astype(int)
    theta = {name: values[places] for name, values in one_fit.theta.items()}
    try:
        log_p = model.log_p(theta), other.log_p(theta)
        return np.allclose(*log_p, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True)
    except (IndexError, KeyError, TypeError, ValueError):
        return False


def _name_of(rule):
    return "terms" if rule is None else type(rule).__name__


def _class_or_type(value):
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return type(value).__name__
