"""Draws from a pseudo posterior on candidates, as a mechanism of a plan."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import xarray as xr

from ppm.candidates import Candidates
from ppm.checks import check_number
from ppm.fit import fit
from ppm.model import Model
from ppm.release.drawing import places, read_off
from ppm.release.mechanisms import Mechanism, alike, categories, clipped, whole_columns
from ppm.release.statement import Guarantee, guarantee, statement_of
from ppm.rules import Capped, Limited
from ppm.seeds import generator, streams
from ppm.terms import Limits

# published records on which a model is tried, beside two of each group: in one table few, in
# others many, because a step may count records; in the last they have the same public values, since
# it may count those of a cell
_FEW, _MANY, _MOST, _OF_CELL = 20, 100, 1_000, 250
_SIZES = (_FEW, False), (_MANY, False), (_MOST, False), (_OF_CELL, True)
# values of the parameters at which it is tried whether `back` takes what is predicted
_THETAS = 50
# of published values those that occur most often, such as codes of a survey's own
_OFTEN = 9
# each of them so many times: with its values, and as often with others that the limits allow
_COPIES = 2
# how many values between the limits, evenly and evenly in the logarithm
_EVENLY = 9
# what surveys write in the place of a value
_CODES = (
    *range(-9, 2),
    *[10**k + digit for k in range(1, 10) for digit in (-4, -3, -2, -1, 0)],
)
# databases that are predicted from each draw of the parameters, of which one is made
_PREDICTED = 10


@dataclass(frozen=True)
class PosteriorRelease:
    """What a pseudo posterior released, and its statement; nothing noisy is beside it.

    Attributes
    ----------
    synthetic : xarray.DataArray or xarray.Dataset
        Values (release, record), each release from one draw of the parameters.
    guarantee : ppm.release.Guarantee
        ε of each release.
    sentences : tuple of str
        Those of the statement.
    noisy, public : dict
        Empty, where a :class:`ppm.release.NoisyRelease` has numbers.
    """

    synthetic: xr.DataArray | xr.Dataset
    guarantee: Guarantee
    sentences: tuple = field(repr=False)
    noisy: dict = field(repr=False, default_factory=dict)
    public: dict = field(repr=False, default_factory=dict)

    def statement(self):
        """Sentences of :func:`ppm.release.release_statement`."""
        return self.sentences


@dataclass(frozen=True, repr=False)
class Posterior(Mechanism):
    r"""A pseudo posterior on candidates: each record's term moves by at most ε over the releases.

    Its arguments are functions. The plan keeps the hash of their source, of their defaults and of
    what they use of a function around them; on reading they are given again. When the plan is saved
    or read, the model is built again and again from published records with other values, those of
    others and further ones from all over the limits, in small tables, in large ones and in one
    public cell. It is refused if one record reaches more than its own term, as in
    ``pm.Normal("mu", records["x"].mean(), 1)``, or where values are cut off at three medians. This
    is a test and no proof. It cannot see a step that only more records would set off, and not what
    a function takes from elsewhere: a global that was computed from confidential records, or that
    changes after the plan was saved.

    Parameters
    ----------
    build : callable
        Function of a table's records, public and confidential columns, that returns a
        :class:`ppm.Model` or a PyMC model of them.
    candidates : callable
        Function of published records, those of one group if the plan has groups, that returns a
        finite set of parameters, as :class:`ppm.Candidates` takes it.
    center : callable, optional
        Function of the same that returns one value of all parameters: the rule is
        :class:`ppm.Limited`, with limits around it. Without it it is :class:`ppm.Capped`.
    weight : float, default 1
        Weight of all records, where there is a center.
    back : callable, optional
        Function from the model's values to those of the confidential column.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> def build(records):
    ...     return ppm.GammaPoisson(records["children"], shape=2, rate=1)
    >>> def candidates(published):
    ...     return {"mu": published["children"].mean() * np.linspace(0.5, 2.0, 50)}
    >>> ppm.release.Posterior(build, candidates)
    Posterior(build=build, candidates=candidates)
    """

    build: Callable
    candidates: Callable
    center: Callable | None = None
    weight: float = 1.0
    back: Callable | None = None

    def __post_init__(self):
        for name in ("build", "candidates", "center", "back"):
            given = getattr(self, name)
            # one whose source can be read, and all that it keeps
            if not inspect.isfunction(given) and (given is not None or name in _NEEDED):
                raise ValueError(
                    f"{name} must be a function, by def or lambda; got {type(given).__name__}"
                )
        check_number("weight", self.weight, at_least=0)

    def _model(self, plan, records):
        # a copy, because a function may write into what it is given
        built = self.build(records.copy())
        if isinstance(built, Model):
            return built
        from ppm.models.pymc import PyMCModel

        # tried once more before anything is drawn, on published records alone
        return PyMCModel.from_records(
            self.build,
            records.copy(),
            example=self._example(plan),
            confidential=[*plan.confidential],
        )

    def _public(self, function, plan):
        """What a function makes of the published records, by label if the plan has groups."""
        if not plan.groups:
            return function(plan.published.copy())
        labels = plan.labels(plan.published)
        by_label = plan.published.groupby(labels)
        return {label: function(records.copy()) for label, records in by_label}

    def check_model(self, plan):
        """Refuse a model in which a published record reaches more than its own term."""
        from ppm.models import own_terms

        # one of PyMC takes a minute for each: many records, in one cell but for a few
        examples = [self._example(plan, *_SIZES[-1])]
        try:
            model = self._model(plan, *examples)
        except ValueError as error:
            raise ValueError(
                "build must make a model of any records whose values the limits allow, and "
                f"failed with published records that have such values ({error})"
            ) from error
        if not hasattr(model, "points_to_try"):
            examples[:0] = [self._example(plan, *size) for size in _SIZES[:-1]]
        for example in examples:
            own_terms.check(
                functools.partial(self._model, plan),
                example,
                confidential=[*plan.confidential],
            )
        if self.back is not None:
            self._check_back(plan)

    def _check_back(self, plan):
        """Refuse a way back that some predictions, from all over the candidates, do not have."""
        model = self.model(self._example(plan, _MANY), plan)
        number = min(_THETAS, model.candidates_in_all)
        thetas, rng = model.points_to_try(number), np.random.default_rng(1)
        for place in range(number):
            theta = {name: values[place] for name, values in thetas.items()}
            # of one release, and one prediction
            predicted = np.asarray(model.predict(theta, rng))[None, None]
            try:
                found = np.asarray(self.back(predicted))
                if found.shape != predicted.shape or pd.isna(found).any():
                    raise ValueError("it gave another shape, or NaN")
            except Exception as error:
                raise ValueError(
                    "back must give a value for each that the model predicts at any of the "
                    f"candidates, in the shape {predicted.shape} of releases, predictions and "
                    f"records; it failed ({error})"
                ) from error

    def _example(self, plan, tried=_FEW, one_cell=False):
        """Published records of every group, and copies of them with values from all over the limits.

        In one cell the public values of most are those that occur most often.
        """
        example = clipped(plan, plan.published)
        # some of each group, and of all values from the lowest to the highest
        order = example.sort_values([*plan.confidential]).index
        spread = order[np.linspace(0, len(order) - 1, tried).astype(int)]
        some = example.groupby(plan.labels(example)).head(2).index
        rows = sorted({*spread, *some})
        known = example.loc[rows].reset_index(drop=True)
        public = [name for name in example if name not in plan.confidential]
        if one_cell and public:
            others = ~np.isin(rows, some)
            most = example.groupby(public, dropna=False, observed=True).ngroup()
            cell = example[most == most.mode()[0]].iloc[0]
            for name in public:
                known[name] = known[name].mask(others, cell[name])
        # four by four the same public values, of which two have the published confidential ones
        rows = np.repeat(np.arange(len(known)), 2 * _COPIES)
        copies = known.loc[rows].reset_index(drop=True)
        changed = np.flatnonzero(np.arange(len(rows)) % 2)
        rng = np.random.default_rng(1)
        for name in plan.confidential:
            values = self._possible(plan, name)
            # each of them, as often as the others
            drawn = rng.permutation(np.resize(np.arange(len(values)), changed.size))
            column = copies[name].to_numpy(values.dtype, copy=True)
            column[changed] = values[drawn]
            copies[name] = column
        return alike(plan, copies)

    def _possible(self, plan, name):
        """Values that a record may have: categories, or numbers from all over the limits."""
        if name not in plan.limits:
            return np.asarray(categories(plan, name))
        low, high = plan.limits[name]
        published = plan.published[name].to_numpy(np.float64)
        sizes = np.abs(published[published != 0])
        least = min([*sizes, 1.0])
        often = plan.published[name].value_counts().head(_OFTEN).index
        values = [np.linspace(low, high, _EVENLY), _CODES, often.to_numpy(np.float64)]
        for end in (low, high):
            if abs(end) > least:
                far = np.geomspace(least, abs(end), _EVENLY)
                values.append(np.copysign(far, end))
        values = np.concatenate(values)
        if name in whole_columns(plan):
            values = np.rint(values)
            low, high = np.ceil(low), np.floor(high)
        values = np.unique(values)
        return values[(values >= low) & (values <= high)]

    def model(self, table, plan, *, secure_noise=False):
        """The :class:`ppm.Candidates` of a table."""
        return Candidates(
            self._model(plan, table),
            self._public(self.candidates, plan),
            groups=plan.labels(table) if plan.groups else None,
            secure_noise=secure_noise,
        )

    def rule(self, plan):
        """The rule: of width ε / m for each of m releases, and public."""
        width = plan.epsilon / plan.releases
        if self.center is None:
            return Capped(width)
        limits = Limits(-width / 2, width / 2)
        center = self._public(self.center, plan)
        return Limited(limits, center=center, weight=self.weight)

    def release(self, table, plan, *, random_seed=None, secure_noise=False):
        """Draw each release from the predictions of parameters of its own."""
        return self.released(table, plan, random_seed=random_seed, secure=secure_noise)

    def released(self, table, plan, *, random_seed=None, secure=False, draws=None):
        """So many releases of one fit, by default as many as the plan has; each has ε / m."""
        draws = plan.releases if draws is None else draws
        seeds = streams(random_seed, 3)
        model = self.model(table, plan, secure_noise=secure)
        fitted = fit(model, self.rule(plan), draws=draws, random_seed=seeds[0])
        predicted = fitted.release(draws, predictions=_PREDICTED, random_seed=seeds[1])
        if self.back is not None:
            predicted = predicted.copy(data=self.back(predicted.values))
        public = [name for name in plan.published if name not in plan.confidential]
        labels = table.groupby(public, dropna=False).ngroup() if public else 0
        labels = np.zeros(len(table), dtype=np.intp) + np.asarray(labels)
        return PosteriorRelease(
            _one_of(predicted, labels, generator(seeds[2])),
            guarantee(fitted),
            (*statement_of(fitted, predicted),),
        )


def _one_of(predicted, labels, rng):
    """One database of several predicted ones, of which records with equal labels are alike.

    Of the predicted values of all records with a label together, whose number is that of these
    records times that of the databases, it has systematic draws.
    """
    columns = predicted if isinstance(predicted, xr.Dataset) else {"": predicted}
    arrays = {name: column.values for name, column in columns.items()}
    first = next(iter(arrays.values()))
    where = places(labels, len(first), rng)
    made = {name: values[:, 0].copy() for name, values in arrays.items()}
    for members in pd.Series(labels).groupby(labels).indices.values():
        for release in range(len(first)):
            order = np.argsort(first[release][:, members], axis=None, kind="stable")
            chosen = read_off(order, where[release, members])
            for name, values in arrays.items():
                pool = values[release][:, members].reshape(
                    order.size, *values.shape[3:]
                )
                made[name][release, members] = pool[chosen]
    one = predicted.isel(prediction=0, drop=True)
    if isinstance(predicted, xr.Dataset):
        return one.assign({name: (one[name].dims, made[name]) for name in made})
    return one.copy(data=made[""])


# functions without which there is no posterior
_NEEDED = ("build", "candidates")
