"""Mechanisms that a plan can name: settings that are public, and one method."""

import functools
import hashlib
import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import xarray as xr

from ppm.candidates import Candidates
from ppm.checks import check_number, listed
from ppm.fit import fit
from ppm.model import Model
from ppm.release.histogram import check_bins, edges_at_quantiles, histogram_release
from ppm.release.noise import NoisyRelease
from ppm.release.raking import check_margins, check_shares, raked_release
from ppm.release.statement import (
    WORDS,
    Guarantee,
    guarantee,
    noisy_guarantee,
    statement_of,
)
from ppm.release.sums import sums_release
from ppm.rules import Capped, Limited
from ppm.seeds import generator, streams
from ppm.terms import Limits

# published records on which a model is tried, beside two of each group
_TRIED = 40


def columns_of(name, names, table):
    """Names of columns that a table has, as a tuple."""
    names = as_names(names)
    if lacking := [column for column in names if column not in table]:
        raise ValueError(f"{name}: there must be a column {listed(lacking)}")
    return names


def as_names(names):
    """One name or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def clipped(plan, table):
    """A table, numbered anew, whose values are within the limits."""
    ends = {name: table[name].clip(*limits) for name, limits in plan.limits.items()}
    return table.assign(**ends).reset_index(drop=True)


def draw(plan, table, *, random_seed=None, secure_noise=False):
    """Synthetic table, and what the mechanism returned, of a table that was checked."""
    drawn = plan.mechanism.release(
        table, plan, random_seed=random_seed, secure_noise=secure_noise
    )
    columns, tables = drawn.synthetic, []
    if not isinstance(columns, Mapping):
        columns = {plan.confidential[0]: columns}
    for number in range(plan.releases):
        values = {name: np.asarray(columns[name])[number] for name in plan.confidential}
        tables.append(clipped(plan, table.assign(**values)))
        if plan.releases > 1:
            tables[-1].insert(0, "release", number + 1)
    return pd.concat(tables, ignore_index=True), drawn


class Mechanism:
    """What releases a table by a plan. For one of your own write a dataclass that inherits from it.

    Its fields are its settings: numbers, words, lists of these, or functions whose source can be
    read. All of them are public, and so is what :meth:`release` computes from ``plan.published``.

    Examples
    --------
    >>> import dataclasses, numpy as np, ppm
    >>> @dataclasses.dataclass(frozen=True)
    ... class Equal(ppm.release.Mechanism):
    ...     bins: int
    ...
    ...     def release(self, table, plan, *, random_seed=None, secure_noise=False):
    ...         edges = np.linspace(*plan.limits["income"], self.bins + 1)
    ...         settings = {"random_seed": random_seed, "secure_noise": secure_noise}
    ...         return ppm.release.histogram.histogram_release(
    ...             table["income"], edges, epsilon=plan.epsilon, **settings
    ...         )
    >>> Equal(4)
    Equal(bins=4)
    """

    def __repr__(self):
        """Kind and the settings that are not the usual ones, the same in every run."""
        usual = vars(type(self))
        told = [
            f"{key}={getattr(x, '__name__', x)}"
            for key, x in vars(self).items()
            if key not in usual or usual[key] != x
        ]
        return f"{type(self).__name__}({', '.join(told)})"

    def check(self, plan):
        """Refuse a plan that the mechanism cannot follow: when the plan is made."""

    def check_model(self, plan):
        """Refuse what only a trial on published records shows: when a plan is saved or read."""

    def labelled(self, drawn, table, plan):
        """The noisy numbers of what was drawn, in tables that say what each of them counts."""
        return drawn.noisy

    def release(self, table, plan, *, random_seed=None, secure_noise=False):
        """Release a confidential table, at the ε of the plan for all its releases together.

        Parameters
        ----------
        table : pandas.DataFrame
            Public and confidential columns, checked, and within the limits of the plan.
        plan : ppm.release.ReleasePlan
            Everything public.

        Returns
        -------
        ppm.release.NoisyRelease
            Or another object with its attributes, and its method ``statement``; ``synthetic`` is an
            array (releases, records), or a dict or a Dataset of these by column.
        """
        raise NotImplementedError


def is_own(mechanism):
    """Whether a mechanism is none of those here."""
    return type(mechanism).__module__ != __name__


def settings_of(mechanism):
    """Kind and settings of a mechanism, as JSON has them; functions by the hash of their source."""
    kind = type(mechanism)
    source = {"source": _source(kind)} if is_own(mechanism) else {}
    return {"kind": kind.__name__, "settings": vars(mechanism)} | source


def plain(value):
    """What JSON writes in the place of an array or a function."""
    return _source(value) if callable(value) else np.asarray(value).tolist()


def _source(thing):
    """SHA-256 of the source of a function or a class."""
    try:
        source = inspect.getsource(thing)
    except (OSError, TypeError):
        raise ValueError(
            f"mechanism: the source of {thing.__name__} must be in a file or a notebook"
        ) from None
    return f"source {hashlib.sha256(source.encode()).hexdigest()}"


@dataclass(frozen=True, repr=False)
class Published(Mechanism):
    """The end at ε = 0: published records of a record's group, drawn again.

    Nothing of the confidential table is used but its public columns.

    Examples
    --------
    >>> import pandas as pd, ppm
    >>> last = pd.DataFrame({"income": [10.0, 20.0, 30.0], "region": ["N", "N", "S"]})
    >>> end = ppm.release.Published()
    >>> plan = ppm.release.ReleasePlan(last, confidential="income", groups="region", limits=(0, 99),
    ...                        mechanism=end, epsilon=0)
    >>> end.release(last, plan, random_seed=1).synthetic["income"].shape
    (1, 3)
    """

    def release(self, table, plan, *, random_seed=None, secure_noise=False):
        """Draw for each record a published one of its group, with all its columns."""
        return drawn_again(plan.published, table, plan, random_seed)


@dataclass(frozen=True, repr=False)
class Records(Mechanism):
    """The other end, for rehearsals alone: the records themselves, drawn again, unprotected."""

    def release(self, table, plan, *, random_seed=None, secure_noise=False):
        again = drawn_again(table, table, plan, random_seed)
        return replace(again, guarantee=Guarantee("local", np.inf, ()))


def drawn_again(source, table, plan, random_seed):
    """For each record of a table, one of the source's records of its group."""
    rng, labels, of = generator(random_seed), plan.labels(table), plan.labels(source)
    chosen = np.empty((plan.releases, len(table)), dtype=np.intp)
    for label in dict.fromkeys(labels):
        members, pool = (np.flatnonzero(some == label) for some in (labels, of))
        chosen[:, members] = rng.choice(pool, (plan.releases, members.size))
    sentence = WORDS["statement"]["published"].format(
        releases=plan.releases, records=len(table), groups=len({*labels})
    )
    guarantee = noisy_guarantee(0.0, "published", secure=True)
    # no package drew noise
    guarantee = replace(guarantee, reasons=guarantee.reasons[1:])
    synthetic = {name: source[name].to_numpy()[chosen] for name in plan.confidential}
    return NoisyRelease(synthetic, {}, guarantee, sentence)


class OneColumn(Mechanism):
    """What releases one confidential column of numbers, by a function with published values."""

    def check(self, plan):
        """Refuse a plan with several confidential columns, or with one of categories."""
        self.column(plan)

    def column(self, plan):
        """The name of that column."""
        if len(plan.confidential) > 1 or not plan.limits:
            raise ValueError(
                f"mechanism {self!r} takes one confidential column of numbers, with limits"
            )
        return plan.confidential[0]

    def given(self, table, plan):
        """Arguments of the function: the column, and what is public."""
        column = self.column(plan)
        return {
            "values": table[column].to_numpy(np.float64),
            "groups": plan.labels(table),
            "published": plan.published[column].to_numpy(np.float64),
            "published_groups": plan.labels(plan.published),
            "epsilon": plan.epsilon,
            "releases": plan.releases,
        }


@dataclass(frozen=True, repr=False)
class Bins(OneColumn):
    """Noisy counts in bins at quantiles of the published records, which fill the bins.

    Parameters
    ----------
    bins, special, tail, above
        As for :func:`ppm.release.histogram.public_edges`, with edges of its own for each group.

    Examples
    --------
    >>> import ppm
    >>> ppm.release.Bins(10, special=[0], tail=2)
    Bins(bins=10, special=[0], tail=2)
    """

    bins: int
    special: tuple = ()
    tail: int = 0
    above: int = 1

    def __post_init__(self):
        check_bins(self.bins, self.special, self.tail, self.above)

    def edges(self, plan):
        """Edges of each group's bins by label: functions of the published table alone."""
        column = self.column(plan)
        values, labels = plan.published[column], plan.labels(plan.published)
        return {
            label: edges_at_quantiles(of_group, plan.limits[column], **vars(self))
            for label, of_group in values.groupby(labels)
        }

    def release(self, table, plan, **noise):
        """Release by :func:`ppm.release.histogram.histogram_release`."""
        given = self.given(table, plan)
        return histogram_release(edges=self.edges(plan), **given, **noise)

    def labelled(self, drawn, table, plan):
        """Counts by group and bin."""
        rows = [
            (label, *ends)
            for label, edges in drawn.public["edges"].items()
            for ends in zip(edges, edges[1:], strict=False)
        ]
        bins = pd.DataFrame(rows, columns=["group", "from", "below"])
        return {"counts": bins.assign(count=drawn.noisy["counts"])}


@dataclass(frozen=True, repr=False)
class Sums(OneColumn):
    """Published records of a group, moved and stretched to two noisy, clipped sums.

    Parameters
    ----------
    power : float, default 0.2
        The sums are of this power of the values, above 0 and at most 1, with their sign.
    clip, share
        As for :func:`ppm.release.sums.sums_release`.

    Examples
    --------
    >>> import ppm
    >>> ppm.release.Sums(power=0.5)
    Sums(power=0.5)
    """

    power: float = 0.2
    clip: tuple = (1.5, 2.2)
    share: float = 0.6

    def __post_init__(self):
        check_number("power", self.power, above=0, at_most=1)
        check_number("share", self.share, above=0, below=1)

    def release(self, table, plan, **noise):
        """Release by :func:`ppm.release.sums.sums_release`."""
        given = self.given(table, plan) | {"limits": [*plan.limits.values()][0]}
        for name in ("values", "published", "limits"):
            given[name] = _power(given[name], self.power)
        moved = sums_release(clip=self.clip, share=self.share, **given, **noise)
        return replace(moved, synthetic=_power(moved.synthetic, 1 / self.power))

    def labelled(self, drawn, table, plan):
        """Both sums by group."""
        groups = [*drawn.public["centers"]]
        sums = zip(("first", "second"), drawn.noisy["sums"].T, strict=True)
        return {"sums": pd.DataFrame({"group": groups} | dict(sums))}


def _power(values, power):
    """A power of the size of values, with their sign."""
    values = np.asarray(values, dtype=np.float64)
    return np.sign(values) * np.abs(values) ** power


@dataclass(frozen=True, repr=False)
class Margins(Mechanism):
    """Published records, raked to noisy margins: for several confidential columns, or many tables.

    Parameters
    ----------
    margins, shares, strata, reach, change
        As for :func:`ppm.release.raking.raked_release`. Each column that they name must be one of
        the plan's: confidential, ``groups`` or ``public``.
    bins, special, tail, above
        As for :func:`ppm.release.histogram.public_edges`, for each confidential column of numbers.

    Examples
    --------
    >>> import ppm
    >>> ppm.release.Margins([("region", "income"), ("region", "owner")], bins=10)
    Margins(margins=[('region', 'income'), ('region', 'owner')], bins=10)
    """

    margins: tuple
    bins: int = 20
    special: tuple = ()
    tail: int = 0
    above: int = 1
    shares: tuple | None = None
    strata: object = 8
    reach: float = 1.0
    change: float = 0.3

    def __post_init__(self):
        check_bins(self.bins, self.special, self.tail, self.above)

    def check(self, plan):
        """Refuse margins and strata of columns that are not the plan's."""
        strata = () if isinstance(self.strata, int) else as_names(self.strata)
        margins = [as_names(margin) for margin in as_names(self.margins)]
        for name, named in {"margins": sum(margins, ()), "strata": strata}.items():
            if unknown := [column for column in named if column not in plan.published]:
                raise ValueError(
                    f"{name}: there must be a column {listed(unknown)} in confidential, "
                    "groups or public"
                )
        public = [name for name in plan.published if name not in plan.confidential]
        check_shares(self.shares, check_margins(margins, public, plan.confidential))

    def release(self, table, plan, **noise):
        """Release by :func:`ppm.release.raking.raked_release`."""
        settings = dict(vars(self))
        for_edges = {
            name: settings.pop(name) for name in ("bins", "special", "tail", "above")
        }
        edges = {
            name: edges_at_quantiles(plan.published[name], ends, **for_edges)
            for name, ends in plan.limits.items()
        }
        return raked_release(
            table[[*plan.published]],
            plan.published,
            confidential=plan.confidential,
            edges=edges,
            epsilon=plan.epsilon,
            releases=plan.releases,
            **settings,
            **noise,
        )

    def labelled(self, drawn, table, plan):
        """Totals by the classes of each margin; of a column of numbers alone by its bins."""
        tables = {}
        for names, (title, totals) in zip(
            map(as_names, self.margins), drawn.noisy.items(), strict=True
        ):
            public = [name for name in names if name not in plan.confidential]
            levels = (
                table.groupby(public, observed=True).size().index if public else [()]
            )
            inside = [name for name in names if name in plan.confidential]
            classes = [
                categories(plan, name) for name in inside if name not in plan.limits
            ]
            columns = [name for name in inside if name not in plan.limits]
            if inside == [*names] and len(names) == 1 and names[0] in plan.limits:
                edges = drawn.public["edges"][names[0]]
                columns, classes = [names[0]], [zip(edges, edges[1:], strict=False)]
            rows = itertools.product(map(_as_row, levels), itertools.product(*classes))
            rows = [(*level, *kind) for level, kind in rows]
            cells = pd.DataFrame(rows, columns=[*public, *columns])
            tables[title] = cells.assign(total=totals.ravel())
        return tables


def _as_row(level):
    return level if isinstance(level, tuple) else (level,)


def categories(plan, name):
    """Categories of a confidential column: those the published one declares, or has; sorted."""
    column = plan.published[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.categories.to_numpy()
    return np.sort(column.unique())


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

    @classmethod
    def of(cls, fitted, releases, *, random_seed=None):
        """All of m releases of a fit."""
        synthetic = fitted.release(releases, random_seed=random_seed)
        return cls(synthetic, guarantee(fitted), (*statement_of(fitted, synthetic),))

    def statement(self):
        """Sentences of :func:`ppm.release.release_statement`."""
        return self.sentences


@dataclass(frozen=True, repr=False)
class Posterior(Mechanism):
    r"""A pseudo posterior on candidates: each record's term moves by at most ε over the releases.

    Its arguments are functions, of which the plan keeps the hash of their source; on reading they
    are given again. When the plan is saved or read, the model is built again and again from
    published records with other values, and refused if one record reaches more than its own term,
    as in ``pm.Normal("mu", records["x"].mean(), 1)``. This is a test and no proof. It cannot see
    what a function takes from elsewhere: a global that was computed from confidential records, or
    that changes after the plan was saved.

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
            if not callable(given) and (given is not None or name in _NEEDED):
                raise ValueError(
                    f"{name} must be a function; got {type(given).__name__}"
                )
        check_number("weight", self.weight, at_least=0)

    def _model(self, plan, records):
        built = self.build(records)
        if isinstance(built, Model):
            return built
        from ppm.models.pymc import PyMCModel

        # tried once more before anything is drawn, on published records alone
        return PyMCModel.from_records(
            self.build,
            records,
            example=self._example(plan),
            confidential=[*plan.confidential],
        )

    def _public(self, function, plan):
        """What a function makes of the published records, by label if the plan has groups."""
        if not plan.groups:
            return function(plan.published)
        labels = plan.labels(plan.published)
        by_label = plan.published.groupby(labels)
        return {label: function(records) for label, records in by_label}

    def check_model(self, plan):
        """Refuse a model in which a published record reaches more than its own term."""
        from ppm.models import own_terms

        own_terms.check(
            functools.partial(self._model, plan),
            self._example(plan),
            confidential=[*plan.confidential],
        )

    def _example(self, plan):
        """Published records of every group, with values from the lowest to the highest."""
        example = clipped(plan, plan.published)
        # some of each group, and of all values from the lowest to the highest
        order = example.sort_values([*plan.confidential]).index
        spread = order[np.linspace(0, len(order) - 1, _TRIED).astype(int)]
        some = example.groupby(plan.labels(example)).head(2).index
        return example.loc[sorted({*spread, *some})].reset_index(drop=True)

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
        seeds = streams(random_seed, 2)
        model = self.model(table, plan, secure_noise=secure_noise)
        fitted = fit(model, self.rule(plan), draws=plan.releases, random_seed=seeds[0])
        released = PosteriorRelease.of(fitted, plan.releases, random_seed=seeds[1])
        if self.back is None:
            return released
        values = released.synthetic
        return replace(released, synthetic=values.copy(data=self.back(values.values)))


# functions without which there is no posterior
_NEEDED = ("build", "candidates")
