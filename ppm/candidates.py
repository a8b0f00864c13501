"""A finite public set of parameters: exact draws, and bounds that are maxima over all of it."""

import functools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from ppm.bounds import Extremes, extremes, shaped_log_p, size_of
from ppm.checks import (
    as_array,
    as_labels,
    check_finite,
    check_flag,
    further,
    listed,
)
from ppm.model import Model
from ppm.terms import weighted

__all__ = ["Candidates"]

# numbers of a matrix of log p that is held, and of a block of one that is not
_HELD, _BLOCK = 1 << 25, 1 << 18


class Candidates(Model):
    r"""A model whose parameters θ come from a finite public set: drawn exactly, without a chain.

    The prior is uniform on the candidates :math:`\theta_1, \dots, \theta_M`, and :math:`p_k \propto
    \exp \sum_i \ell_i(\theta_k)` the pseudo posterior. A candidate that is listed twice counts
    twice. This is ours, not the paper's; of all models it alone takes the rules
    :class:`ppm.Limited` and :class:`ppm.Capped`, whose ε holds for every database.

    Parameters
    ----------
    model : ppm.Model
        The model: its ``records``, ``log_p`` and ``predict``, not its own prior.
    candidates : dict, xarray.Dataset or xarray.DataTree
        **Public** values of all parameters, fixed without looking at the records: a dict from
        parameters' names to arrays whose first axis counts the candidates, or the posterior of a
        fit to a published table. With ``groups`` a dict of one such set for each label.
    groups : array_like (records,), optional
        **Public** labels of the records; how many records a group has is public with them. Each
        group has its own θ, drawn given its records, and arrays of θ then have the groups as their
        second axis.
    secure_noise : bool, default False
        Whether OpenDP chooses the candidates, from exact sums of rounded terms and with the
        operating system's randomness: for an actual release, yes. It needs limits or own weights,
        and time for each of the draws: ask for as many as there are to be releases.

    Raises
    ------
    TypeError, ValueError
        If these are no model, no such sets or no such labels.

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

    Limits of width W meet the condition, and so do own weights. The paper's weights and one weight
    for all do not, since the bounds of all records enter each; nor does anything that was chosen by
    looking at the records. NaN counts as -inf; a record that some candidates make impossible has
    weight 0 among own weights, so that one candidate outside the model's range can silence all
    records. In many dimensions a finite set is too coarse to learn from.

    *Secure noise.* A record's term, less the lower limit, is rounded to one of the :math:`N + 1`
    multiples of :math:`W / N`, with :math:`N = \lfloor 2^{50} / n \rfloor`. Sums of these whole
    numbers are exact in any order, and no rounding can lead below 0 or above N. To leave a record
    out therefore lowers all scores, each by between 0 and N: OpenDP's *monotonic*
    :math:`l_\infty` distance N, which bounds the range of the change. (To replace it moves them in
    both directions, a range of 2N.) At the smallest scale s at which OpenDP's own map still grants
    :math:`\epsilon = W` for that distance, its noisy maximum has Gumbel noise, which chooses k with
    probability proportional to :math:`\exp(\text{score}_k / s)`, the pseudo posterior of the
    rounded terms itself; the theorem gives it :math:`N / s \leq W`, and OpenDP's map the matching
    :math:`\rho = W^2 / 8`. ``random_seed`` then fixes predictions alone. Not all proofs of OpenDP's
    ``contrib`` have been reviewed.

    Examples
    --------
    Counts of two groups, each with a mean of its own on a public grid:

    >>> import numpy as np, ppm
    >>> grid = {"mu": np.geomspace(1.0, 10.0, 46)}
    >>> counts = ppm.GammaPoisson([3, 5, 4, 1, 2])
    >>> model = ppm.Candidates(counts, {"a": grid, "b": grid}, groups=list("aaabb"))
    >>> fit = ppm.fit(model, ppm.Capped(1.0), draws=500, random_seed=1)
    >>> fit.epsilon(), fit.theta["mu"].shape, fit.theta["mu"].mean(axis=0).round(1)
    (1.0, (500, 2), array([4., 3.]))
    """

    _public = ("model", "candidates_in_all", "secure_noise")

    def __init__(self, model, candidates, *, groups=None, secure_noise=False):
        if not isinstance(model, Model):
            raise TypeError(f"model must be a ppm.Model; got {type(model).__name__}")
        self.model, self.records = model, model.records
        self.dims, self.coords = model.dims, model.coords
        self.values, self.known = model.values, model.known
        self.secure_noise = check_flag("secure_noise", secure_noise)
        # sums of as many whole numbers are exact in floating point, and so is each of them
        self._steps = 2**50 // self.records
        self._rows, self._sets = _by_group(candidates, groups, self.records)
        if groups is not None:
            self.labels = [*self._sets]
        for label, one_set in self._sets.items():
            of = "" if groups is None else f" of {label!r}"
            first = {name: values[:1] for name, values in one_set.items()}
            try:
                checked = as_array("log_p", model.log_p(first))
                if checked.shape != (1, self.records):
                    raise ValueError(f"log p has the shape {checked.shape}")
            except (IndexError, KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    f"candidates{of} must hold values of every parameter of the model, by "
                    f"its name and in its shape; got {listed([*one_set])}"
                ) from error

    def __getstate__(self):
        """What is pickled: not log-likelihoods, which may be large."""
        return {name: value for name, value in vars(self).items() if name != "_held"}

    #: Public labels of the groups, in the order of θ's second axis; None without groups.
    labels = None

    @property
    def candidates_in_all(self):
        """Number of candidates, of all groups together."""
        return sum(size_of(one_set) for one_set in self._sets.values())

    def same_set(self, other):
        """Whether another :class:`Candidates` has the same candidates by group, and noise."""
        if self.secure_noise != other.secure_noise or [*self._sets] != [*other._sets]:
            return False
        return all(
            {*mine} == {*theirs}
            and all(np.array_equal(mine[name], theirs[name]) for name in mine)
            for mine, theirs in zip(
                self._sets.values(), other._sets.values(), strict=True
            )
        )

    def check_own_terms(self):
        self.model.check_own_terms()

    def points_to_try(self, number):
        """Some θ of the sets, for :func:`ppm.models.own_terms.check`."""
        parts = {}
        for label, one_set in self._sets.items():
            places = np.linspace(0, size_of(one_set) - 1, number).astype(int)
            parts[label] = {name: values[places] for name, values in one_set.items()}
        return self._together(parts)

    def prior_at(self, theta):
        """All candidates and the groups, which the prior is of, by name."""
        sets = {
            f"{name}, candidates of {label}": values
            for label, one_set in self._sets.items()
            for name, values in one_set.items()
        }
        everyone = np.arange(self.records)
        rows = {f"group {label}": everyone[rows] for label, rows in self._rows.items()}
        return sets | rows

    def draw(self, terms, draws, rng):
        """Draw candidates independently with their :meth:`probabilities`."""
        if self.secure_noise and terms.limits is None:
            raise ValueError(
                "secure_noise needs terms of a public width: a rule ppm.Limited or ppm.Capped"
            )
        chosen = {}
        for label, totals in self._totals(terms).items():
            if self.secure_noise:
                choose = noisy_maximum(self._steps, terms.width)
                scores = totals.astype(np.int64).tolist()
                chosen[label] = [choose(scores) for _ in range(draws)]
            else:
                chosen[label] = rng.choice(totals.size, size=draws, p=_softmax(totals))
        return self._together(
            {
                label: {name: values[chosen[label]] for name, values in one_set.items()}
                for label, one_set in self._sets.items()
            }
        )

    def log_p(self, theta):
        """Log-likelihood (draws, records) of each record at its group's θ; -inf for NaN."""
        values = np.empty((size_of(theta), self.records))
        for label, rows in self._rows.items():
            values[:, rows] = self._log_p_of(label, self._of(label, theta))
        return values

    def predict(self, theta, rng):
        """A database in which each group's records come from its own θ."""
        parts = [
            self.model.predict(self._of(label, theta, axis=0), rng)
            for label in self._rows
        ]
        if isinstance(parts[0], Mapping):
            return {
                name: self._own_rows([part[name] for part in parts])
                for name in parts[0]
            }
        return self._own_rows(parts)

    def probabilities(self, terms):
        """Probabilities of the candidates (candidates,) under terms; with groups a dict by label."""
        nats = terms.width / self._steps if self.secure_noise else 1.0
        chances = {
            label: _softmax(totals * nats)
            for label, totals in self._totals(terms).items()
        }
        return chances.get(None, chances)

    def ends(self):
        """Lowest and highest log p of each record over the candidates of its group."""
        ends = np.empty((2, self.records))
        for label, rows in self._rows.items():
            lowest, highest = np.inf, -np.inf
            for _, log_p in self._blocks(label):
                lowest = np.minimum(lowest, log_p.min(axis=0))
                highest = np.maximum(highest, log_p.max(axis=0))
            ends[:, rows] = lowest, highest
        return ends

    def extremes(self, terms):
        """Extremes over all candidates, whatever was drawn."""
        ends, maxima, sums = np.empty((2, self.records)), [], []
        for label, rows in self._rows.items():
            size = size_of(self._sets[label])
            group = extremes(self._blocks(label), size, terms.of(rows))
            ends[:, rows] = group.lowest, group.highest
            maxima.append(group.maxima)
            sums.append(group.sums)
        return Extremes(
            lowest=ends[0],
            highest=ends[1],
            maxima=np.concatenate(maxima),
            sums=np.concatenate(sums),
        )

    def levels(self, center):
        """Log p (records,) at one public θ₀, by name, or by label and name; 0 where infinite."""
        levels = np.empty(self.records)
        for label, rows in self._rows.items():
            try:
                values = dict(dict(center)[label] if is_grouped(center) else center)
                theta = {name: np.array([value]) for name, value in values.items()}
                levels[rows] = self._log_p_of(label, theta)[0]
            except (IndexError, KeyError, TypeError, ValueError):
                raise ValueError(
                    "center must hold one value of every parameter of the model, or such a "
                    "dict for every group"
                ) from None
        return _finite(levels)

    @functools.cached_property
    def _held(self):
        """Log p of each group's records at its candidates, by label, if that is not too much."""
        numbers = sum(
            size_of(one_set) * np.arange(self.records)[self._rows[label]].size
            for label, one_set in self._sets.items()
        )
        if numbers > _HELD:
            return {}
        return {
            label: np.concatenate([log_p for _, log_p in self._read(label)])
            for label in self._sets
        }

    def _blocks(self, label):
        """Places among a group's candidates, and log p (candidates, own records) there."""
        if label in self._held:
            held = self._held[label]
            step = max(1, _BLOCK // held.shape[1])
            for start in range(0, len(held), step):
                yield slice(start, start + step), held[start : start + step]
        else:
            yield from self._read(label)

    def _read(self, label):
        one_set, step = self._sets[label], max(1, _BLOCK // self.records)
        for start in range(0, size_of(one_set), step):
            block = slice(start, start + step)
            part = {name: values[block] for name, values in one_set.items()}
            yield block, self._log_p_of(label, part)

    def _log_p_of(self, label, theta):
        """Log p (draws, own records) of a group's records; -inf for NaN."""
        log_p = shaped_log_p(self.model, theta)
        log_p = np.where(np.isnan(log_p), -np.inf, log_p)
        return np.ascontiguousarray(log_p[:, self._rows[label]])

    def _totals(self, terms):
        """Sums of terms at each group's candidates, by label.

        In nats up to a constant or, for secure noise, in whole steps.
        """
        totals = {}
        for label, rows in self._rows.items():
            of_group, parts, levels = terms.of(rows), [], None
            for _, log_p in self._blocks(label):
                levels = _finite(log_p[0]) if levels is None else levels
                parts.append(self._measured(of_group, log_p, levels).sum(axis=1))
            totals[label] = np.concatenate(parts)
            if not np.isfinite(totals[label].max()):
                raise ValueError(
                    "candidates must hold one that makes no record of positive weight "
                    "impossible, and none with an infinite density; or give limits"
                )
        return totals

    def _measured(self, terms, log_p, levels):
        """Terms from a level, which changes no probability and keeps sums small.

        It is the lower limit, or without limits the record's own, such as the first candidate's.
        """
        if terms.limits is None:
            return weighted(log_p, terms.weights, levels)
        above = np.where(terms.weights > 0, terms(log_p) - terms.limits.low, 0.0)
        if not self.secure_noise:
            return above
        # up to 2**50 steps the products' rounding is less than half a step
        return np.rint(above * (self._steps / terms.width))

    def _of(self, label, theta, axis=1):
        """A group's part of θ."""
        if self.labels is None:
            return theta
        place = self.labels.index(label)
        return {name: np.take(values, place, axis) for name, values in theta.items()}

    def _together(self, parts):
        """θ with the groups as second axis, from each group's own."""
        if self.labels is None:
            return parts[None]
        return {
            name: np.stack([parts[label][name] for label in self.labels], axis=1)
            for name in parts[self.labels[0]]
        }

    def _own_rows(self, databases):
        """Of databases of all records, one for each group, the rows of the group's own records."""
        databases = [np.asarray(database) for database in databases]
        kind = np.result_type(*databases)
        together = np.empty(databases[0].shape, dtype=kind)
        for database, rows in zip(databases, self._rows.values(), strict=True):
            together[rows] = database[rows]
        return together


def is_named(value):
    """Whether this is a tuple of parameters' names and values."""
    return _is_pairs(value) and all(isinstance(name, str) for name, _ in value)


def is_grouped(value):
    """Whether this is a tuple of labels and such tuples."""
    return _is_pairs(value) and all(is_named(theta) for _, theta in value)


def _is_pairs(value):
    return (
        isinstance(value, tuple)
        and len(value) > 0
        and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
    )


def noisy_maximum(distance, epsilon):
    """OpenDP's choice of a place in a list of whole scores, with probabilities like exp(score / s).

    The scale s is the smallest at which OpenDP, which rounds ε upwards, grants ``epsilon`` where a
    record lowers all scores by up to ``distance``, or raises all: see the class above.
    """
    dp = further("opendp.prelude", "extra")
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


def _finite(levels):
    """Levels with 0 where they are infinite."""
    return np.where(np.isfinite(levels), levels, 0.0)


def _softmax(totals):
    shares = np.exp(totals - totals.max())
    return shares / shares.sum()


def _by_group(candidates, groups, records):
    """Rows and candidates of each group that has records, by label; of all by None."""
    if groups is None:
        return {None: slice(None)}, {None: _checked_set("candidates", candidates)}
    labels = as_labels("groups", groups, records)
    rows = pd.Series(labels).groupby(labels).indices
    if not isinstance(candidates, Mapping):
        raise ValueError(
            "candidates must be a dict with one set for each label in groups; got "
            f"{type(candidates).__name__}"
        )
    if lacking := [label for label in rows if label not in candidates]:
        kinds = [
            " and ".join(sorted({type(_plain(label)).__name__ for label in labels}))
            for labels in (rows, candidates)
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
    sets = {
        label: _checked_set(f"candidates of {label!r}", candidates[label])
        for label in rows
    }
    shapes = {
        label: {name: values.shape[1:] for name, values in one_set.items()}
        for label, one_set in sets.items()
    }
    first, *others = shapes
    if unlike := [label for label in others if shapes[label] != shapes[first]]:
        raise ValueError(
            "candidates must have the same parameters in every group, in the same "
            f"shapes: those of {listed(unlike)} are not like those of {first!r}"
        )
    return rows, sets


def _plain(label):
    """A label of NumPy as one of Python, which is written as its user wrote it."""
    return label.item() if isinstance(label, np.generic) else label


def _checked_set(name, candidates):
    """A finite set of θ as a dict of arrays (candidates, …), at least one, that nobody can change."""
    if hasattr(candidates, "data_vars"):
        # draws of a fit, chain after chain
        candidates = {
            parameter: values.transpose("chain", "draw", ...).values.reshape(
                -1, *values.shape[2:]
            )
            for parameter, values in candidates.data_vars.items()
        }
    if not isinstance(candidates, Mapping) or not candidates:
        raise ValueError(
            f"{name} must be a dict from the names of parameters to arrays of numbers, "
            f"or the posterior of a fit; got {type(candidates).__name__}"
        )
    arrays = {}
    for parameter, values in candidates.items():
        label = f"{name}: {parameter}"
        values = np.array(as_array(label, values))
        if values.ndim == 0 or not len(values):
            raise ValueError(f"{label} must have the candidates as its first axis")
        arrays[parameter] = check_finite(label, values, "finite numbers")
        values.setflags(write=False)
    if len({len(values) for values in arrays.values()}) > 1:
        raise ValueError(f"{name} must have as many values of each parameter")
    return arrays
