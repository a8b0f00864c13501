"""What a mechanism is, to a plan: settings that are public, and one method; and both ends."""

import contextlib
import datetime
import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import ModuleType

import numpy as np
import pandas as pd

from ppm.checks import as_list, listed, shown
from ppm.release.drawing import places, read_off, rows_of
from ppm.release.noise import NoisyRelease
from ppm.release.statement import WORDS, Guarantee, noisy_guarantee
from ppm.seeds import generator

#: Fractions of its multiples are spread evenly between 0 and 1.
GOLDEN = 5**0.5 / 2 - 0.5


def columns_of(name, names, table):
    """Names of columns that a table has, as a tuple."""
    names = as_names(names) if np.iterable(names) else (names,)
    if not all([isinstance(column, str) for column in names]):
        raise ValueError(
            f"{name} must be the name of a column, or several, as text; got "
            f"{listed([*names])}"
        )
    if lacking := [column for column in names if column not in table]:
        raise ValueError(f"{name}: there must be a column {listed(lacking)}")
    return names


def has_numbers(column):
    """Whether a column has numbers that are not declared as categories, nor true and false."""
    numeric = pd.api.types.is_numeric_dtype(column)
    return numeric and not pd.api.types.is_bool_dtype(column)


def as_names(names):
    """One name or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def clipped(plan, table):
    """A table, numbered anew, whose values are within the limits."""
    table = table.reset_index(drop=True)
    for name, limits in plan.limits.items():
        table[name] = table[name].clip(*limits)
    return table


def alike(plan, table):
    """A table, numbered anew, whose confidential columns have types and kinds of the published ones.

    What a mechanism is given then follows no type, no category that nobody has and no fraction
    that only the confidential records brought.
    """
    table, whole = table.reset_index(drop=True), whole_columns(plan)
    for name in plan.confidential:
        published = plan.published[name].dtype
        if name in plan.limits:
            values = np.clip(table[name].to_numpy(np.float64), *plan.limits[name])
            table[name] = _whole(plan, name, values) if name in whole else values
            continue
        ordered = isinstance(published, pd.CategoricalDtype) and published.ordered
        values = pd.Categorical(table[name], categories(plan, name), ordered)
        if not isinstance(published, pd.CategoricalDtype):
            values = values.astype(published)
        table[name] = values
    return table


def bare(table, names):
    """Columns of a table and nothing else that it carries, under these names.

    That would be attributes, flags, names of the index and of the columns, categories that occur
    nowhere, and what a class of its own keeps.
    """
    columns = {}
    for name in names:
        values = table[name].array
        if isinstance(values, pd.Categorical):
            values = values.remove_unused_categories()
            kinds = pd.Index(values.categories.array)
            values = pd.Categorical.from_codes(values.codes, kinds, values.ordered)
        elif isinstance(table[name].dtype, np.dtype):
            # a type may carry metadata, which its name does not
            values = values.to_numpy().astype(table[name].dtype.str)
        columns[name] = values
    return pd.DataFrame(columns)


def draw(plan, table, *, random_seed=None, secure_noise=False):
    """Synthetic table, and what the mechanism returned, of a table that was checked."""
    # a copy, so that nothing that a mechanism writes into its table is released
    drawn = plan.mechanism.release(
        table.copy(), plan, random_seed=random_seed, secure_noise=secure_noise
    )
    tables = tables_of(plan, table, drawn, plan.releases)
    if plan.releases > 1:
        for number, one in enumerate(tables, start=1):
            one.insert(0, "release", number)
    return pd.concat(tables, ignore_index=True), drawn


def tables_of(plan, table, drawn, releases):
    """The table with the synthetic values of each release, within the limits."""
    columns = getattr(drawn, "synthetic", None)
    if columns is None:
        raise ValueError(
            "mechanism must return what a ppm.release.NoisyRelease has; "
            f"{type(drawn).__name__} has no synthetic values"
        )
    if not isinstance(columns, Mapping):
        columns = {plan.confidential[0]: columns}
    if lacking := [name for name in plan.confidential if name not in columns]:
        raise ValueError(
            "mechanism must return synthetic values of each confidential column by its name; "
            f"{listed(lacking)} is lacking"
        )
    values, shape = {}, (releases, len(table))
    for name in plan.confidential:
        if np.ma.is_masked(columns[name]):
            raise ValueError(
                f"mechanism must return a synthetic value for each record; {name!r} has masked ones"
            )
        values[name] = np.asarray(columns[name])
        if values[name].shape != shape:
            raise ValueError(
                f"mechanism must return synthetic values of shape {shape}, releases and records; "
                f"{name!r} has {values[name].shape}"
            )
        if name in plan.limits and values[name].dtype.kind not in "biufO":
            raise ValueError(
                f"mechanism must return numbers in {name!r}; got {values[name].dtype}"
            )
    whole = whole_columns(plan)
    made = []
    for one in range(releases):
        own = {name: all_of[one] for name, all_of in values.items()}
        # of arrays alone, so that it has nothing that a table carries beside them
        new = {name: own.get(name, table[name].array) for name in table}
        new = clipped(plan, pd.DataFrame(new))
        for name in whole:
            new[name] = _rounded(plan, name, new[name], one)
        made.append(new)
    return made


def whole_columns(plan):
    """Confidential columns of numbers whose published values are whole."""

    def found():
        ends = clipped(plan, plan.published[[*plan.limits]])
        return [one for one in ends if (ends[one].to_numpy(np.float64) % 1 == 0).all()]

    return plan.once("whole columns", found)


def _rounded(plan, name, column, release):
    """Whole numbers: each value rounded up or down, so that means stay."""
    values = column.to_numpy(np.float64)
    if not np.isfinite(values).all():
        return column  # which a plan refuses
    down = np.floor(values)
    # rows are in random order, and up is as often as the fraction says, without a random number
    spread = (np.arange(values.size) + release * values.size) * GOLDEN
    spread -= np.floor(spread)
    return _whole(plan, name, down + (spread < values - down))


def _whole(plan, name, values):
    """Whole numbers within the limits, of the type that the published ones have."""
    low, high = plan.limits[name]
    values = np.clip(np.rint(values), np.ceil(low), np.floor(high))
    typed = pd.api.types.is_integer_dtype(plan.published[name].dtype)
    return values.astype(np.int64) if typed and max(-low, high) < 2**63 else values


class Mechanism:
    """What releases a table by a plan. For one of your own write a dataclass that inherits from it.

    Its fields are its settings: numbers, words, lists of these, or functions whose source can be
    read. All of them are public, and so is what :meth:`release` computes from ``plan.published``.

    A plan calls it once with published values in the place of confidential ones, and then with the
    confidential ones. What is promised, said and told as public is taken from the first call; the
    second gives synthetic values and noisy numbers alone.

    Examples
    --------
    One noisy mean of whole numbers from 0 to 9 in all groups together, around which all values are
    the same; a record moves the sum by 9 at most:

    >>> import dataclasses, numpy as np, pandas as pd, ppm
    >>> from ppm.release import noise, statement
    >>> @dataclasses.dataclass(frozen=True, repr=False)
    ... class OneMean(ppm.release.Mechanism):
    ...     most: int = 9
    ...
    ...     def release(self, table, plan, *, random_seed=None, secure_noise=False):
    ...         (name,) = plan.confidential
    ...         total = table[name].clip(0, self.most).astype(int).sum()
    ...         settings = {"secure": secure_noise, "rng": np.random.default_rng(random_seed)}
    ...         noisy = noise.noisy_integers([total], self.most, plan.epsilon, **settings)
    ...         shape = plan.releases, len(table)
    ...         return ppm.release.NoisyRelease(
    ...             np.full(shape, noisy[0] / len(table)),
    ...             {"sum": noisy},
    ...             statement.noisy_guarantee(plan.epsilon, "sums", secure=secure_noise),
    ...             "Every value is the mean, from a noisy sum.",
    ...         )
    >>> OneMean()
    OneMean()

    With noise of its own, and words for it: some answers of "no" or "yes", chosen by chance, are
    turned round before they are counted. The answer of a record that is left out would be a fair
    coin's, so that one record makes what is seen at most 2 - exp(-ε), and at least exp(-ε), times
    as likely. The chance is a whole number of 2^53, which both sources of noise keep exactly:

    >>> import secrets
    >>> @dataclasses.dataclass(frozen=True, repr=False)
    ... class Turned(ppm.release.Mechanism):
    ...     def release(self, table, plan, *, random_seed=None, secure_noise=False):
    ...         (name,), most = plan.confidential, 2**53
    ...         rng, records = np.random.default_rng(random_seed), len(table)
    ...         if secure_noise:
    ...             tossed = np.array([secrets.randbelow(most) for _ in range(records)])
    ...         else:
    ...             tossed = rng.integers(most, size=records)
    ...         turned = np.ceil(most * np.exp(-plan.epsilon) / 2)
    ...         noisy = int(((table[name] == "yes") ^ (tossed < turned)).sum())
    ...         chance = turned / most
    ...         share = np.clip((noisy / records - chance) / (1 - 2 * chance), 0, 1)
    ...         drawn = rng.random((plan.releases, records)) < share
    ...         return ppm.release.NoisyRelease(
    ...             np.where(drawn, "yes", "no"),
    ...             {"yes": noisy},
    ...             statement.noisy_guarantee(
    ...                 plan.epsilon, "own", secure=secure_noise,
    ...                 words="the noisy number of yes and any number of releases made of it",
    ...             ),
    ...             f"{plan.releases} × {records:,} answers, drawn with a noisy share of yes.",
    ...         )
    >>> last = pd.DataFrame({"owner": ["yes", "no", "no"] * 400})
    >>> plan = ppm.release.ReleasePlan(last, confidential="owner", mechanism=Turned(), epsilon=1)
    >>> release = Turned().release(last, plan, secure_noise=True)
    >>> abs((release.synthetic == "yes").mean() - 1 / 3) < 0.2
    np.True_
    """

    def __repr__(self):
        """Kind and the settings that are not the usual ones, the same in every run."""
        usual = vars(type(self))
        told = [
            f"{key}={getattr(x, '__name__', x)}"
            for key, x in vars(self).items()
            if key not in usual or not np.array_equal(usual[key], x)
        ]
        return f"{type(self).__name__}({', '.join(told)})"

    def check(self, plan):
        """Refuse a plan that the mechanism cannot follow: when the plan is made."""

    def check_model(self, plan):
        """Refuse what only a trial on published records shows: when a plan is saved or read."""

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
    """Whether a mechanism is none of the library."""
    return not type(mechanism).__module__.startswith("ppm.release.")


def check_within(special, plan):
    """Refuse special values that lie within the limits of no column: they would be clipped."""
    for value in special:
        if not any(low <= value <= high for low, high in plan.limits.values()):
            raise ValueError(
                f"special must have values within the limits; got {value:g}: write another value "
                "in its place, in both tables"
            )


def check_special(special):
    """Refuse special values that are no finite numbers, or one of them twice."""
    if np.ndim(special) != 1:
        raise ValueError(f"special must be a list of values; got {shown(special)}")
    if len(special):
        values = as_list("special", special)
        if np.unique(values).size < values.size:
            raise ValueError("special must have each value once")


def settings_of(mechanism):
    """Kind and settings of a mechanism, as JSON has them; functions by the hash of their source."""
    kind = type(mechanism)
    source = {"source": _source(kind)} if is_own(mechanism) else {}
    return {"kind": kind.__name__, "settings": vars(mechanism)} | source


def plain(value):
    """What JSON writes in the place of an array or a function."""
    return _source(value) if callable(value) else np.asarray(value).tolist()


def _source(thing):
    """SHA-256 of the source of a function or a class, and of what a function has from around it."""
    source = _text_of(thing)
    if kept := _kept_by(thing, [thing]):
        source += json.dumps(kept, sort_keys=True)
    return f"source {hashlib.sha256(source.encode()).hexdigest()}"


def _text_of(thing):
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        raise ValueError(
            f"mechanism: the source of {thing.__name__} must be in a file or a notebook"
        ) from None


def _kept_by(function, seen):
    """Defaults of a function, and what it uses of functions around it, by name, as JSON has them."""
    if not inspect.isfunction(function):
        return {}
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    kept = {one.name: one.default for one in parameters if one.default is not one.empty}
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        # a name that has no value yet has none to keep
        with contextlib.suppress(ValueError):
            kept[name] = cell.cell_contents
    told = {}
    for name, value in kept.items():
        try:
            told[name] = _kept(value, seen)
        except TypeError:
            raise ValueError(
                f"mechanism: {function.__name__} must take as defaults, and from functions around "
                "it, numbers, words, dates, lists, sets, tables, modules and functions; "
                f"{name} is {type(value).__name__}"
            ) from None
    return told


def _kept(value, seen):
    """Something that a function keeps, as JSON has it, the same in every run."""
    if inspect.isfunction(value):
        if any([value is one for one in seen]):
            return value.__qualname__
        return [_text_of(value), _kept_by(value, [*seen, value])]
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, pd.DataFrame | pd.Series):
        return value.to_csv()
    if isinstance(value, Mapping):
        return [[_kept(one, seen) for one in pair] for pair in value.items()]
    if isinstance(value, list | tuple):
        return [_kept(one, seen) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_kept(one, seen)) for one in value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
        return [str(value.dtype), value.astype(str).tolist()]
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, datetime.date | datetime.timedelta | Decimal):
        return str(value)
    # a class, or what was written in C
    if callable(value) and hasattr(value, "__name__"):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    raise TypeError


@dataclass(frozen=True, repr=False)
class Published(Mechanism):
    """Published records of a record's group, drawn again, at ε = 0.

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
    labels = plan.coded(table)
    rows = rows_of(labels)
    where = places(labels, plan.releases, generator(random_seed))

    def increasing():
        """Rows of the source by label, in the order of their values."""
        table = source.reset_index(drop=True)
        order = table.sort_values([*plan.confidential]).index.to_numpy()
        pools = rows_of(plan.coded(source)[order])
        return {label: order[own] for label, own in pools.items()}

    public = source is plan.published
    pools = plan.once("records", increasing) if public else increasing()
    chosen = np.empty(where.shape, dtype=np.intp)
    for label, own in rows.items():
        chosen[:, own] = read_off(pools[label], where[:, own])
    sentence = WORDS["statement"]["published"].format(
        releases=plan.releases, records=len(table), groups=len(rows)
    )
    guarantee = noisy_guarantee(0.0, "published", secure=True)
    # no package drew noise
    guarantee = replace(guarantee, reasons=guarantee.reasons[1:])
    synthetic = {name: source[name].to_numpy()[chosen] for name in plan.confidential}
    return NoisyRelease(synthetic, {}, guarantee, sentence)


class OneColumn(Mechanism):
    """What releases one confidential column of numbers."""

    def check(self, plan):
        """Refuse a plan with several confidential columns, or with one of categories."""
        self.column(plan)
        check_within(getattr(self, "special", ()), plan)

    def column(self, plan):
        """The name of that column."""
        if len(plan.confidential) > 1 or not plan.limits:
            raise ValueError(
                f"mechanism {self!r} takes one confidential column of numbers, with limits"
            )
        return plan.confidential[0]

    def given(self, table, plan):
        """Values and labels of the records, and increasing published values by label."""
        column = self.column(plan)
        values = table[column].to_numpy(np.float64)
        pools = plan.once("pools", lambda: pools_of(plan, column))
        return values, plan.coded(table), pools


def pools_of(plan, column):
    """Published values of each group by label, increasing."""
    values = plan.published[column].to_numpy(np.float64)
    rows = rows_of(plan.coded(plan.published))
    return {label: np.sort(values[rows[label]]) for label in sorted(rows)}


def categories(plan, name):
    """Categories of a confidential column: those the published one declares, or has; sorted."""
    column = plan.published[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.categories.to_numpy()
    return np.sort(column.unique())
