"""Whether a record acts through its own term only: the model is built again with other values."""

import contextlib
import functools
import sys
import warnings
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from ppm.checks import as_array, listed
from ppm.model import Model
from ppm.seeds import generator
from ppm.terms import Terms

__all__ = ["check"]

# of fewer records three of four are all but one
_FOURS = 8
# values of the parameters, of a PyMC model as many more; releases are drawn at the first ones
_POINTS, _SEED = 4, 1
# relative tolerance between two computations of one number
_ROUNDING = 1e-9
_ALONE = "for a strict epsilon a record must act through its own term only"


def check(build, example, *, confidential=None, random_seed=0):
    """Refuse a model in which a record's value reaches more than the record's own term.

    The model is built from the example, and again and again with other values in some of its
    records. Terms of the records that stayed, prior, potentials and releases must not move.

    Parameters
    ----------
    build : callable
        Function of the records that returns a model. **Whatever is computed from the records must
        be computed in it.**
    example : array_like (records, …) or pandas.DataFrame
        **Public** records, made up or published, with at least two different values. The values
        that they have are those that records are given, so that they should reach as far as those
        of the confidential records may. Two dozen are enough, if the public columns allow it.
    confidential : sequence of str, optional
        Of a data frame the columns that are changed, the whole row of them together; all others are
        public. Missing entries stay where they are.
    random_seed : int, SeedSequence or Generator, default 0
        For the parameters' values, and for the values that records are given.

    Raises
    ------
    ValueError
        If anything else than the terms of the changed records moves, or nothing at all.

    Notes
    -----
    The parameters' values are draws under weights of 1, and priors differ where draws under weights
    of 0 do, with the same seed. A model may know better: by ``points_to_try(number)``, values of θ, and
    ``prior_at(theta)``, what tells its prior from another there, by name.

    A value may reach another record through a group mean, a lag, a standardised copy, a label that
    occurs, a potential, or a Python function of a ``pm.CustomDist``: each is seen by what it does.
    Records are told apart by the binary digits of their row numbers: in one table those are changed
    whose first digit is 0, in another those where it is 1, and so on, so that of any two records
    each is changed while the other one stays, in :math:`2 \\log_2 n` tables. In two further tables
    all confidential values are alike. In others three of four records, or nearly all, have the
    lowest, a middle or the highest value of a column, or there are low values alone, or high ones,
    so that means, quantiles, ends and the number of outliers move far. A record must have the same
    term in all tables in which it has the same value.

    This is a test and no proof. It does not see what was computed outside of ``build`` (from
    confidential records: the example's are others), nor what ``build`` would do with values that
    are unlike all of the example. Since the example is public, a refusal tells nothing of the
    confidential records.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> from ppm.models import own_terms
    >>> made_up = np.array([3, 5, 4, 6, 20])
    >>> own_terms.check(lambda counts: ppm.GammaPoisson(counts, shape=2, rate=0.4), made_up)
    >>> own_terms.check(lambda counts: ppm.GammaPoisson(counts, rate=1 / counts.mean()), made_up)
    Traceback (most recent call last):
        ...
    ValueError: build: a record's value reaches the prior of mu: for a strict epsilon a record
        must act through its own term only
    """
    table, rng = _Table.of(example, confidential), generator(random_seed)
    with _quickly(), warnings.catch_warnings():
        # of a model that is built a dozen times
        warnings.simplefilter("ignore")
        first = _model(build(table.records.copy()))
        if first.records != len(table.codes):
            raise ValueError(
                "build must make a model of the records that it is given, each with a term; "
                f"of {len(table.codes)} it made one of {first.records}"
            )
        points = _points(first)
        seen = [_Seen(first, points, table.codes)]
        again = _model(build(table.records.copy()))
        if moved := seen[0].moved(_Seen(again, points, table.codes)):
            raise ValueError(
                "build must make the same model each time, but of the same records it "
                f"gave another one, by {moved}: give fixed seeds, and no pm.Simulator"
            )
        for records, codes in table.changes(rng):
            try:
                other = _Seen(_model(build(records)), points, codes)
                moved = [found for one in seen if (found := one.moved(other))]
            except Exception as error:
                raise ValueError(
                    f"build must make a model of any records, and failed "
                    f"({type(error).__name__}) where some of the example have others' "
                    "values"
                ) from error
            if moved:
                raise ValueError(
                    f"build: a record's value reaches {moved[0]}: {_ALONE}"
                )
            seen.append(other)
    if all(_same(seen[0].terms, other.terms) for other in seen):
        raise ValueError(
            "build: no record's value reaches its own term: it must use the records "
            "that it is given and no others, and the example have values that differ "
            "in their densities"
        )


class _Table(NamedTuple):
    """Records of an example, and their confidential columns, each with whole numbers as values.

    Missing entries have the number -1.
    """

    records: object
    names: list
    codes: np.ndarray

    @classmethod
    def of(cls, example, confidential):
        """Read an array, or the confidential columns of a data frame."""
        if isinstance(example, pd.DataFrame):
            names = [] if confidential is None else [*confidential]
            if isinstance(confidential, str) or not names or {*names} - {*example}:
                raise ValueError(
                    "confidential must be a list of the example's columns that are not "
                    f"public, from {listed([*example])}"
                )
            columns = [example[name] for name in names]
        elif confidential is not None:
            raise ValueError(
                "confidential must be left out where the example is no pandas.DataFrame"
            )
        else:
            example = np.ma.asanyarray(example)
            if not example.ndim:
                raise ValueError("example must have one row per record")
            columns = np.ma.getdata(example).reshape(len(example), -1).T
            names = None
        codes = np.column_stack([_numbered(column) for column in columns])
        if names is None:
            codes[np.ma.getmaskarray(example).reshape(codes.shape)] = -1
            example = example if np.ma.is_masked(example) else np.ma.getdata(example)
        return cls(example, names, codes)

    def changes(self, rng):
        """Tables in which some records have values of others, and their codes."""
        records = len(self.codes)
        _, first, kind = np.unique(
            self.codes, axis=0, return_index=True, return_inverse=True
        )
        if first.size < 2:
            raise ValueError("example must have records with different values")
        steps = rng.integers(1, first.size, records)
        others = first[(kind + steps) % first.size]
        for digit in range((records - 1).bit_length()):
            half = np.arange(records) >> digit & 1 == 1
            yield self._with(others, half)
            yield self._with(others, ~half)
        for row in rng.choice(first, 2, replace=False):
            yield self._with(np.full(records, row), np.ones(records, bool))
        if records < _FOURS:
            return
        for name in range(self.codes.shape[1]):
            column = self.codes[:, name]
            order = first[np.argsort(column[first], kind="stable")]
            rank = np.argsort(np.argsort(column, kind="stable"))
            # at each end, so that outliers are many, or one
            few = sorted({1, max(1, records // 32)})
            for row in order[[0, order.size // 2, -1]]:
                alike = np.full(records, row)
                # of four in a row one stays
                stays = np.repeat(rng.integers(4, size=records // 4 + 1), 4)[:records]
                yield self._with(alike, np.arange(records) % 4 != stays)
                # or so few that most rules for outliers count them as such
                yield self._with(alike, rng.permutation(records) % 16 != 0)
                for end in few:
                    yield self._with(alike, (rank >= end) & (rank < records - end))
            sixth = order.size // 6 + 2
            for part in (order[:sixth], order[: order.size // 2], order[-sixth:]):
                # no value is as high, or as low, as others of the example
                inside = np.isin(column, column[part])
                yield self._with(rng.choice(part, records), ~inside)

    def _with(self, others, changed):
        """The table in which the changed records have the values of these other ones."""
        missing = self.codes < 0
        written = changed[:, None] & ~missing & ~missing[others]
        codes = np.where(written, self.codes[others], self.codes)
        records = self.records.copy()
        if self.names is None:
            values = np.ma.getdata(records)
            np.copyto(values, values[others], where=written.reshape(values.shape))
            return records, codes
        for name, rows in zip(self.names, written.T, strict=True):
            values = self.records[name].array.copy()
            values[rows] = values[others][rows]
            records[name] = values
        return records, codes


def _numbered(column):
    """Number of each value, in increasing order where they have one; -1 where it is missing."""
    try:
        return pd.factorize(np.asarray(column), sort=True)[0]
    except TypeError:
        return pd.factorize(column)[0]


class _Seen:
    """All that a record could reach in a model of a table, at values of its parameters."""

    def __init__(self, model, points, codes):
        self.model, self.points, self.codes = model, points, codes

    @functools.cached_property
    def prior(self):
        """Its log-density by parameter, or draws from it, and shapes of parameters."""
        if hasattr(self.model, "prior_at"):
            return self.model.prior_at(self.points)
        return _drawn(self.model, 0.0)

    @functools.cached_property
    def terms(self):
        """Log-likelihoods (points, records)."""
        return np.asarray(as_array("log_p", self.model.log_p(self.points)), float)

    @functools.cached_property
    def release(self):
        """Databases drawn with one seed."""
        rng = np.random.default_rng(_SEED)
        databases = []
        for number in range(min(_POINTS, *map(len, self.points.values()))):
            theta = {name: values[number] for name, values in self.points.items()}
            database = self.model.predict(theta, rng)
            databases.append(
                database if isinstance(database, Mapping) else {"y": database}
            )
        return {name: [one[name] for one in databases] for name in databases[0]}

    def moved(self, other):
        """What another model has not the same, in words: of terms those of the same values."""
        # with other parameters there are no terms at these values
        found = [f"the prior of {name}" for name in _moved(self.prior, other.prior)]
        if not found:
            stayed = np.all(self.codes == other.codes, axis=1)
            if not _same(self.terms[:, stayed], other.terms[:, stayed]):
                found.append("the terms of others")
            if _moved(self.release, other.release):
                found.append("the release")
        return " and ".join(found)


def _model(built):
    if not isinstance(built, Model):
        raise TypeError(
            "build must return a ppm.Model, of a PyMC model ppm.PyMCModel(model); got "
            f"{type(built).__name__}"
        )
    return built


def _points(model):
    """Values of θ (points, …), by name."""
    if hasattr(model, "points_to_try"):
        return model.points_to_try(_POINTS)
    return _drawn(model, 1.0)


def _drawn(model, weight):
    """Draws of θ under one weight for all records."""
    terms = Terms(np.full(model.records, weight))
    theta = dict(model.draw(terms, _POINTS, np.random.default_rng(_SEED)))
    return {name: x for name, x in theta.items() if name not in model.sample_stats}


def _moved(one, other):
    """Names under which two dicts do not have the same array, but for rounding."""
    return sorted(
        name
        for name in {*one, *other}
        if name not in one or name not in other or not _same(one[name], other[name])
    )


def _same(one, other):
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    return np.allclose(one, other, rtol=_ROUNDING, atol=0.0, equal_nan=True)


def _quickly():
    """Context in which what PyMC compiles runs as plain Python, where PyMC is in use."""
    pytensor = sys.modules.get("pytensor")
    if pytensor is None:
        return contextlib.nullcontext()
    return pytensor.config.change_flags(mode="FAST_COMPILE")
