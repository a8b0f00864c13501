"""Everything public about a release, and the one place where confidential records enter."""

import hashlib
import json
import numbers
import os
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Context
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from ppm.checks import (
    Brief,
    as_ends,
    as_list,
    check_count,
    check_flag,
    check_number,
    listed,
    shown,
)
from ppm.release import files, mechanisms, rehearsal
from ppm.release.account import Account
from ppm.release.bins import Bins
from ppm.release.margins import Margins
from ppm.release.means import Means
from ppm.release.mechanisms import (
    Published,
    alike,
    as_names,
    bare,
    categories,
    columns_of,
    draw,
    has_numbers,
    whole_columns,
)
from ppm.release.noise import LEAST_EPSILON, MOST_EPSILON
from ppm.release.posterior import Posterior
from ppm.release.statement import WORDS, Guarantee, in_lines
from ppm.seeds import generator, streams

_WORDS = WORDS["plan"]
# those that a saved plan can name
_MECHANISMS = {
    kind.__name__: kind for kind in (Bins, Margins, Means, Posterior, Published)
}
# what a release's JSON has
_TOLD = ("digest", "account", "noisy", "public")
_UPWARDS = Context(prec=10, rounding=ROUND_CEILING)
# a column that changes from row to row as often is the same as another by no chance
_CHANGES = 30
# two samples in which as many different rows occur are no chance, if each is there as often
_DIFFERENT = 20
_ENTERED = "Epsilon is entered, and nothing is released. "


class Confidential:
    """A confidential table: a plan takes it where it releases, and nowhere else.

    Parameters
    ----------
    table : pandas.DataFrame
        Public and confidential columns.

    Examples
    --------
    >>> import pandas as pd, ppm
    >>> ppm.release.Confidential(pd.DataFrame({"region": ["N", "S"], "income": [12_000, 31_000]}))
    Confidential(2 records of 'region', 'income')
    """

    def __init__(self, table):
        self._table = check_table("table", table)

    def __repr__(self):
        columns = ", ".join(map(repr, self._table))
        return f"Confidential({len(self._table):,} records of {columns})"


def check_table(name, table):
    """A DataFrame, numbered anew, whose columns still tell if another one has the same memory."""
    accepted = f"{name} must be a pandas DataFrame with rows and columns"
    if not isinstance(table, pd.DataFrame):
        raise ValueError(f"{accepted}; got {type(table).__name__}")
    if table.empty:
        raise ValueError(f"{accepted}; got shape {table.shape}")
    if not table.columns.is_unique:
        raise ValueError(f"{name} must have each column once")
    if not all([isinstance(column, str) for column in table.columns]):
        raise ValueError(
            f"{name} must have text as names of columns: "
            f"{name}.columns = {name}.columns.map(str)"
        )
    return table.reset_index(drop=True)


def _check_another(confidential, published, names):
    """Refuse a confidential table that the published one is, or is made of.

    Values that both have are no sign of it: two samples of ages share nearly all. But values that
    are there once in each, and are most of the published ones, of which none is anywhere else, are;
    and so are many different values, each of them as often in one as in the other.
    """
    each = [[name] for name in names]
    for columns in each if len(names) < 2 else [*each, [*names]]:
        one, other = (table[columns] for table in (confidential, published))
        if len(columns) == 1 and _same_column(one[columns[0]], other[columns[0]]):
            raise ValueError(
                f"confidential must be another table than the published one; {columns[0]!r} "
                "is the same column in both"
            )
        if _is_part(other, one):
            raise ValueError(
                "confidential must be another table than the published one: all published "
                f"values of {listed(columns)} are among its own, and most of them are there "
                "once, or all as often. This refusal tells something of confidential records: keep it to "
                "yourself"
            )


def _same_column(one, other):
    """Whether two columns are the same one, or have the same values in an order of their own."""
    if np.shares_memory(_memory(one), _memory(other)):
        return True
    values = one.to_numpy()
    # sorted values that are few may be the same by chance
    return one.equals(other) and np.sum(values[1:] != values[:-1]) >= _CHANGES


def _is_part(part, whole):
    """Whether a table is part of another, and half of its rows at least occur once in both.

    Or whether it is the other one in another order: with so many different rows, that is no chance.
    """
    both = pd.concat([part, whole], ignore_index=True)
    for name in both:
        if all(has_numbers(table[name]) for table in (part, whole)):
            both[name] = both[name].astype(np.float64)
        else:
            both[name] = both[name].astype(object)
    rows = both.groupby([*both], sort=False).ngroup().to_numpy()
    few, many = (
        np.bincount(own, minlength=rows.max() + 1)
        for own in (rows[: len(part)], rows[len(part) :])
    )
    # ranks and codes of quantiles are equally often in every table
    if np.array_equal(few, many) and few.size >= _DIFFERENT and np.ptp(few):
        return True
    once = np.count_nonzero((few == 1) & (many == 1))
    return bool(np.all(few <= many)) and 2 * once >= len(part)


def _memory(column):
    """Where a column's values are, or those of its codes."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.array.codes
    return column.to_numpy()


@dataclass(frozen=True, repr=False)
class Release(Brief):
    """What a plan released: all of it may be published.

    Attributes
    ----------
    synthetic : pandas.DataFrame
        The plan's public columns, and synthetic confidential ones; with several releases a column
        ``release``. Rows are in a random order, since their order in the table might tell something.
    statement : str
        What is promised, and on which conditions, a sentence a line.
    guarantee : ppm.release.Guarantee
        The same in parts; of a posterior's releases ε is that of each.
    noisy : dict
        The noisy numbers that it was made of, as tables that say what each one counts.
    public : dict
        What was fixed without the confidential values: ``limits``, and such as ``edges``.
    digest : str
        SHA-256 of the plan.
    account : dict or None
        Its entry in the account, with the account's name; none at ε = 0.
    """

    synthetic: pd.DataFrame
    statement: str
    guarantee: Guarantee
    noisy: dict
    public: dict
    digest: str
    account: dict | None = None
    _public = ("synthetic", "digest")

    def save(self, path):
        """Write the table as CSV, and beside it what may be published too, where no file stands.

        The statement has the suffix ``.txt``; what is public, with the noisy numbers, ``.json``.
        All three are written, or none. ``plan.release(path=…)`` tries this before it costs ε.
        """
        files.write_new(self._contents(_names(path)))

    def _contents(self, names):
        """What the three files hold, in bytes."""
        told = _written({name: getattr(self, name) for name in _TOLD})
        texts = (
            self.synthetic.to_csv(index=False),
            self.statement + "\n",
            json.dumps(told, ensure_ascii=False, indent=1) + "\n",
        )
        return dict(zip(names, [text.encode() for text in texts], strict=True))


def _names(path):
    """Where a release's table, statement and numbers are written."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str) or Path(text).suffix.lower() != ".csv":
        raise ValueError(
            f"path must be a file whose name ends in .csv; got {shown(text)}"
        )
    path = Path(path).parent.resolve() / Path(path).name
    return path, path.with_suffix(".txt"), path.with_suffix(".json")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReleasePlan:
    """A release, planned in public: made, rehearsed and saved without the confidential table.

    Parameters
    ----------
    published : pandas.DataFrame
        A **published** table with the columns that are to be released, such as last year's.
    confidential : str or sequence of str
        Its columns that are confidential in the table to be released.
    mechanism : ppm.release.Mechanism
        How to release: for example ``ppm.release.Bins(10)``.
    epsilon : float
        ε of everything that is released, from 1e-9 to 30 nats; 0 for :class:`ppm.release.Published`.
    groups : str or sequence of str, optional
        Public columns; records that agree in them are a group. They are released as they are.
    limits : (float, float) or dict of these by column, optional
        The lowest and the highest value of each confidential column of numbers, **public**. Values
        beyond count as the limit. A column without limits holds categories, those that the
        published column has or, as a pandas Categorical, declares.
    public : str or sequence of str, optional
        Further public columns, which are **released as they are**. A column that is named nowhere
        is neither used nor released.
    releases : int, default 1
        Number m of synthetic tables.
    source : str, optional
        Where the published table comes from, in words for the statement, such as ``"Diary Survey
        of 2018, public-use files"``.
    rehearsed : dict, optional
        What :meth:`ppm.release.Rehearsal.best` noted.

    Examples
    --------
    >>> import numpy as np, pandas as pd, ppm
    >>> def year(seed, middle):
    ...     rng = np.random.default_rng(seed)
    ...     incomes = middle * rng.lognormal(sigma=0.7, size=2000)
    ...     return pd.DataFrame({"region": np.tile(["N", "S"], 1000), "income": incomes})
    >>> last_year, this_year = year(1, 30_000), year(2, 36_000)
    >>> plan = ppm.release.ReleasePlan(
    ...     last_year, confidential="income", groups="region", limits=(0, 500_000),
    ...     mechanism=ppm.release.Bins(10), epsilon=0.5,
    ... )
    >>> plan.save("plan.json")
    >>> table = ppm.release.Confidential(this_year)
    >>> noise = {"secure_noise": False, "random_seed": 1}
    >>> release = plan.release(table, account="account.jsonl", path="release.csv", **noise)
    >>> release.synthetic["income"].mean() / this_year["income"].mean() - 1 < 0.05
    np.True_
    >>> ppm.release.Account("account.jsonl").total
    Decimal('0.5')
    """

    published: pd.DataFrame = field(kw_only=False)
    confidential: tuple
    mechanism: mechanisms.Mechanism
    epsilon: float
    groups: tuple = ()
    limits: dict = field(default_factory=dict)
    public: tuple = ()
    releases: int = 1
    source: str = ""
    rehearsed: dict | None = None
    # where this very plan was saved
    _saved: list = field(default_factory=list, init=False)
    # what a rehearsal, which applies a plan again and again, does not compute again
    _kept: dict | None = field(default=None, init=False)

    def __post_init__(self):
        published, limits = check_table("published", self.published), self.limits
        confidential = columns_of("confidential", self.confidential, published)
        groups = columns_of("groups", self.groups, published)
        public = columns_of("public", self.public, published)
        if not isinstance(limits, Mapping):
            limits = dict.fromkeys(confidential, limits)
        if unknown := [name for name in limits if name not in confidential]:
            raise ValueError(
                f"limits must be of confidential columns; got {listed(unknown)}"
            )
        if both := [name for name in confidential if name in (*groups, *public)]:
            raise ValueError(
                f"confidential must have no column of groups or public; got {listed(both)}"
            )
        for name in confidential:
            if name not in limits and has_numbers(published[name]):
                raise ValueError(
                    f"limits must be given for {name!r}, which has numbers; if they are "
                    "codes of categories, make it a pandas Categorical"
                )
        if self.releases != 1 and "release" in (*confidential, *groups, *public):
            raise ValueError(
                "published must have no column 'release' where there are several releases, "
                "which it numbers"
            )
        # ε = 0 is refused below, for all but published records
        least = LEAST_EPSILON if self.epsilon else 0
        epsilon = check_number(
            "epsilon", self.epsilon, at_least=least, at_most=MOST_EPSILON
        )
        checked = {
            "published": _columns(published, confidential, groups, public),
            "confidential": confidential,
            "groups": groups,
            # in one order, also where the plan is read again
            "limits": {
                name: tuple(as_ends(f"limits of {name!r}", limits[name]).tolist())
                for name in confidential
                if name in limits
            },
            "public": public,
            "epsilon": epsilon,
            "releases": check_count("releases", self.releases),
        }
        if not isinstance(self.source, str) or not self.source.isprintable():
            raise ValueError("source must be text of one line")
        for name, value in checked.items():
            # a frozen dataclass takes no ordinary assignment
            object.__setattr__(self, name, value)
        if not isinstance(self.mechanism, mechanisms.Mechanism):
            raise ValueError(
                "mechanism must be a ppm.release.Mechanism, such as ppm.release.Bins(10); got "
                f"{type(self.mechanism).__name__}"
            )
        if isinstance(self.mechanism, Published) != (epsilon == 0):
            raise ValueError(
                "epsilon must be 0 for ppm.release.Published(), and above for all others; "
                f"got {epsilon:g}"
            )
        self._check_columns("published", self.published)
        self._tell_clipped()
        self.mechanism.check(self)

    def __repr__(self):
        return (
            f"ReleasePlan({self.mechanism}, epsilon={self.epsilon:g}, "
            f"confidential={self.confidential}, groups={self.groups}; "
            f"{len(self.published):,} published records)"
        )

    def _check_columns(self, name, table):
        """Refuse columns that lack, values that are no numbers, unknown categories and groups."""
        columns_of(name, self.published, table)
        for column in self.confidential:
            if column in self.limits:
                _check_numbers(name, column, table)
                continue
            if self.published[column].isna().any():
                raise ValueError(
                    f"published must have no missing value in {column!r}: make it a category "
                    "of its own"
                )
            self._check_kind(name, column, table)
            known = categories(self, column)
            if not table[column].isin(known).all():
                raise ValueError(
                    f"{name} must have only published categories in {column!r}, none missing; "
                    f"published are {listed(known.tolist())}: declare all possible ones in the "
                    "published table, as a pandas Categorical"
                )
        for column in self.public:
            self._check_kind(name, column, table, mixed=True)
        self.check_groups(name, table)

    def _check_kind(self, name, column, table, *, mixed=False):
        """Refuse labels of several kinds in a column, or of another kind than the published ones."""
        published, given = (kinds_of(one[column]) for one in (self.published, table))
        if len(given) > 1 and not mixed:
            raise ValueError(
                f"{name} must have labels of one kind in {column!r}; got {' and '.join(given)}"
            )
        if not {*given} <= {*published} and {*given, *published} <= _COMPARED:
            shown_labels = self.published[column].dropna().unique().tolist()
            shown_labels = listed(sorted(shown_labels, key=str))
            raise ValueError(
                f"{name} must have {' or '.join(published)} in {column!r}, as the published "
                f"table has: {shown_labels}; got {' and '.join(given)}"
            )

    def check_groups(self, name, table):
        """Refuse a table with missing labels, or with groups that nobody published."""
        for column in self.groups:
            if table[column].isna().any():
                raise ValueError(f"{name} must have no missing label in {column!r}")
            self._check_kind(name, column, table)
        known = {*self.labels(self.published)}
        if unknown := sorted({*self.labels(table)} - known):
            raise ValueError(
                f"{name} must have no group without published records; got "
                f"{listed(unknown)}; the published table has {listed(sorted(known))}"
            )

    def _tell_clipped(self):
        """Warn of published values beyond the limits, which count as the limit."""
        for name, (low, high) in self.limits.items():
            values = self.published[name].to_numpy(np.float64)
            beyond = np.count_nonzero((values < low) | (values > high))
            if beyond:
                warnings.warn(
                    f"limits of {name!r}: {beyond:,} of {values.size:,} published values lie "
                    "beyond them, and count as the limit",
                    stacklevel=4,
                )

    def labels(self, table):
        """Label of each record's group (records,): its values as text; "" without groups."""
        return np.asarray(self.coded(table), dtype=object)

    def coded(self, table):
        """The labels as a pandas Categorical, whose codes are found sooner than text."""
        columns = [_texts(table[column]) for column in self.groups]
        if not columns:
            return pd.Categorical.from_codes(np.zeros(len(table), dtype=np.intp), [""])
        if len(columns) == 1:
            return columns[0]
        # so that "p × q" and "r" are not "p" and "q × r"
        columns = [
            np.array([text.replace("×", "××") for text in one.categories], object)[
                one.codes
            ]
            for one in columns
        ]
        return pd.Categorical([*map(" × ".join, zip(*columns, strict=True))])

    def once(self, name, compute):
        """What is computed of the published table and other public things, kept in a rehearsal."""
        if self._kept is None:
            return compute()
        if name not in self._kept:
            self._kept[name] = compute()
        return self._kept[name]

    rehearse = rehearsal.rehearse

    @property
    def settings(self):
        """All that is public, as the saved plan has it; the published table by its hash."""
        settings = {
            item.name: getattr(self, item.name) for item in fields(self) if item.init
        }
        settings["published"] = _table_hash(self.published)
        settings["mechanism"] = mechanisms.settings_of(self.mechanism)
        if not self.source:
            # as plans of before there was a source
            del settings["source"]
        return json.loads(_canonical(settings))

    @property
    def digest(self):
        """SHA-256 of everything public."""
        return _digest(self.settings)

    def save(self, path):
        """Write the plan as JSON, with its digest and versions, where no other plan stands.

        The published table is not in it: :meth:`read` takes it again.

        Raises
        ------
        FileExistsError
            If another file stands there.
        ValueError
            If a model lets one record reach more than its own term.
        """
        path = Path(path).absolute()
        # once, because it hashes the published table
        settings = self.settings
        content = {
            "plan": settings,
            "digest": _digest(settings),
            "versions": versions(),
        }
        stands = os.path.lexists(path)
        if stands and saved_digest(path) != content["digest"]:
            raise FileExistsError(f"path: another plan or file stands in {path.name}")
        self.mechanism.check_model(self)
        if not stands:
            text = json.dumps(content, ensure_ascii=False, indent=1)
            files.write_new({path: text.encode()})
        self._saved.append(path)

    @classmethod
    def read(cls, path, published, *, mechanism=None):
        """Read a plan that was saved.

        Parameters
        ----------
        path : str or path
            The file.
        published : pandas.DataFrame
            The published table again.
        mechanism : ppm.release.Mechanism, optional
            The mechanism again, if it is made of functions or is one of your own.

        Raises
        ------
        ValueError
            If the file, the table or the mechanism is not what it was.
        """
        path = Path(path).absolute()
        try:
            content = json.loads(path.read_text("utf-8"))
            settings, digest = content["plan"], content["digest"]
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"path must hold a plan as JSON; got {path.name}"
            ) from None
        if _digest(settings) != digest:
            raise ValueError(
                f"path must hold a plan as it was saved; {path.name} was changed"
            )
        _check_version(path.name, settings)
        names = [settings[key] for key in ("confidential", "groups", "public")]
        if (
            _table_hash(_columns(check_table("published", published), *names))
            != (settings["published"])
        ):
            raise ValueError(
                "published must be the table that the plan was made with, with the same "
                "columns, types, values and order"
            )
        kind = settings["mechanism"]["kind"]
        if mechanism is None:
            if "source " in _canonical(settings["mechanism"]):
                raise ValueError(
                    f"mechanism must be given again: mechanism={kind}(…), since it has "
                    "functions or is one of your own"
                )
            mechanism = _MECHANISMS[kind](**settings["mechanism"]["settings"])
        plan = cls(**settings | {"published": published, "mechanism": mechanism})
        if plan.settings["mechanism"] != settings["mechanism"]:
            raise ValueError(
                f"mechanism must be that of the plan, {kind}, with the same settings and "
                f"the same source of its functions; got {mechanism}"
            )
        mechanism.check_model(plan)
        plan._saved.append(path)
        return plan

    def release(
        self,
        confidential,
        *,
        account=None,
        path=None,
        again=False,
        secure_noise=True,
        random_seed=None,
    ):
        """Release the confidential table once: the only place where it enters.

        First the mechanism releases the same public columns with published values in the place of
        confidential ones, to the last letter of the files, and the room for them is taken, so that
        what would fail has cost nothing. The guarantee, the statement and what is public are those
        of this trial, which the confidential values cannot change. Then ε is entered in the
        account, and only then is the noise drawn: if a run breaks, no ε stays untold.

        Parameters
        ----------
        confidential : ppm.release.Confidential
            The table.
        account : ppm.release.Account or path, optional
            The account of this table's ε. At ε = 0 nothing is entered, and none is needed.
        path : str or path, optional
            Where to write the release at once, as :meth:`ppm.release.Release.save` does: a CSV,
            and beside it the statement and the numbers. Without it they are to be saved later.
        again : bool, default False
            Whether to release by this plan a second time; ε adds up.
        secure_noise : bool, default True
            Whether OpenDP draws the noise: for an actual release, yes.
        random_seed : int, SeedSequence or Generator, optional
            Without secure noise, the source of randomness; for a study, not for a release.

        Raises
        ------
        ValueError
            If the plan was not saved, the account holds it already or has no budget left, or the
            table has other columns, missing labels, groups without published records, or values
            that are no numbers; or if the mechanism's release cannot be written.
        RuntimeError
            If the mechanism fails with the confidential table alone, after ε was entered; what it
            says is left out, because it may tell a record's value.
        OSError
            If something stands at one of the names of the three files, or they cannot be written;
            nothing was entered then. If they cannot be written although there was room, after ε
            was entered, the message says where the release is, and the error's attribute
            ``release`` holds it; so do the notes and the attribute of an interrupt at that moment.

        Warns
        -----
        UserWarning
            If the mechanism promises something else of the confidential table than of the
            published one.

        Returns
        -------
        ppm.release.Release
        """
        if not isinstance(confidential, Confidential):
            raise ValueError(
                "confidential must be a ppm.release.Confidential; got "
                f"{type(confidential).__name__}"
            )
        secure = check_flag("secure_noise", secure_noise)
        if secure and random_seed is not None:
            raise ValueError(
                "random_seed must be left out with secure_noise: who knows it could "
                "subtract the noise"
            )
        digest = self.digest
        if not self._saved:
            raise ValueError("plan must be saved before it is used: plan.save(path)")
        if digest not in map(saved_digest, self._saved):
            raise ValueError(
                "plan must be as it was saved, but it was changed, or its file was or is "
                "gone: make the plan again, and save it"
            )
        self._check_columns("confidential", confidential._table)
        _check_another(confidential._table, self.published, self.confidential)
        table = bare(confidential._table, self.published)
        if self.epsilon and account is None:
            raise ValueError("account must be given: ε is entered there")
        if self.epsilon and not isinstance(account, Account):
            account = Account(account)
        names = path if path is None else _names(path)
        if names:
            if self.epsilon and (both := {*names} & {*account.files}):
                raise ValueError(
                    f"path: {both.pop().name} would be a file of the account and of the release"
                )
            files.check_free(names)
        what = f"{self.releases} × {len(table):,} records, {_quoted(self.confidential)}"
        entered = {"epsilon": self.epsilon, "what": what, "digest": digest}
        # the entry as it would be, or its refusal before the trial's work
        entry = account.try_entry(**entered, again=again) if self.epsilon else None
        seeds = streams(random_seed, 3)
        table = alike(self, table.sample(frac=1, random_state=generator(seeds[0])))
        # what fails for a public reason fails here, before it costs anything
        end = rehearsal.quietly(self, mechanism=Published(), epsilon=0, releases=1)
        stand_in = alike(self, draw(end, table, random_seed=seeds[1])[0])
        trial, tried = draw(self, stand_in, random_seed=seeds[1], secure_noise=secure)
        if self.digest != digest:
            raise ValueError(
                "mechanism must leave plan.published as it is, but changed it: let it work on a "
                "copy, and make the plan again"
            )
        self._check_trial(trial, tried)
        promised = [*self._opening(secure), *tried.statement()]

        def made(synthetic, noisy):
            """All that is released; what the noise does not touch is as in the trial."""
            told = in_lines([*promised, *self._told(account, entry, digest)])
            public = {**tried.public, "limits": self.limits}
            return Release(
                synthetic, told, tried.guarantee, noisy, public, digest, entry
            )

        try:
            contents = made(trial, tried.noisy)._contents(names or range(3))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"mechanism must release what CSV and JSON can hold: {error}"
            ) from error
        with files.reserved(contents) if names else nullcontext() as place:
            if self.epsilon:
                entry = account.enter(**entered, again=again)
            try:
                synthetic, drawn = draw(
                    self, table, random_seed=seeds[2], secure_noise=secure
                )
                self._check_columns("mechanism's synthetic table", synthetic)
                release = made(synthetic, drawn.noisy)
            except Exception as error:
                # whose words may tell a record's value
                raise RuntimeError(
                    "mechanism failed with the confidential table where it did not with "
                    f"published values ({type(error).__name__}; its words may tell a value, and "
                    f"are left out). {_ENTERED if self.epsilon else ''}Try it on made-up records "
                    "of the same columns"
                ) from None
            if names:
                _place(release, names, place)
        if drawn.guarantee != tried.guarantee:
            warnings.warn(
                "mechanism promised something else of the confidential table than of "
                "published values, and the statement keeps to the latter: find out why "
                "before anything is published",
                stacklevel=2,
            )
        return release

    def _check_trial(self, trial, tried):
        """Refuse a trial that promises too little, or lacks what a release has."""
        parts = ("noisy", "public", "guarantee", "statement")
        if lacking := [part for part in parts if not hasattr(tried, part)]:
            raise ValueError(
                "mechanism must return what a ppm.release.NoisyRelease has; "
                f"{type(tried).__name__} has no {listed(lacking)}"
            )
        promised = tried.guarantee
        if not isinstance(promised, Guarantee):
            raise ValueError(
                "mechanism must return a ppm.release.Guarantee; got "
                f"{type(promised).__name__}"
            )
        # a fit promises its ε for each of its releases
        times = self.releases if promised.covers == "release" else 1
        within = promised.epsilon * times <= self.epsilon * (1 + 1e-12)
        if promised.kind != "strict" or not within:
            raise ValueError(
                "mechanism must give a strict guarantee, and no more than the plan's ε"
            )
        if isinstance(tried.statement(), str):
            raise ValueError("mechanism: statement() must return a list of sentences")
        self._check_columns("mechanism's synthetic table", trial)

    def _opening(self, secure):
        """Sentences on whether a release is to be published, and on its columns."""
        if self.epsilon and not secure:
            yield _WORDS["seeded"]
        public = [name for name in self.published if name not in self.confidential]
        several = "several" if len(self.confidential) > 1 else "one"
        yield _WORDS[several].format(columns=_quoted(self.confidential))
        yield _WORDS["unchanged"].format(columns=_quoted(public) or "no column")
        yield _WORDS["source" if self.source else "no_source"].format(
            source=self.source
        )
        for column, (low, high) in self.limits.items():
            yield _WORDS["limits"].format(column=_quoted([column]), low=low, high=high)
        if self.epsilon and (whole := whole_columns(self)):
            yield _WORDS["whole"].format(columns=_quoted(whole))
        if mechanisms.is_own(self.mechanism):
            yield _WORDS["own"].format(kind=type(self.mechanism).__name__)

    def _told(self, account, entry, digest):
        """Sentences on what the plan, and not its mechanism, knows of a release."""
        if isinstance(self.mechanism, Posterior):
            yield _WORDS["model"]
            yield _WORDS["pooled"]
        if entry is None:
            yield _WORDS["nothing"]
        else:
            yield _WORDS["account"].format(
                name=account.name,
                total=_UPWARDS.create_decimal(entry["total"]),
                budget=""
                if account.budget is None
                else _WORDS["budget"].format(budget=account.budget),
                day=datetime.now(UTC).date(),
            )
        yield _WORDS["saved"].format(digest=digest)
        software = ", ".join(map(" ".join, versions().items()))
        yield _WORDS["software"].format(software=software)


def _place(release, names, place):
    """Write a release whose ε is entered; where that fails, somewhere else."""
    try:
        place(release._contents(names))
    except BaseException as error:
        where = "it is this error's attribute release, which can be saved"
        # anything may be wrong by now, also a second interrupt, and nothing must be lost
        with suppress(BaseException):
            folder = Path(tempfile.mkdtemp(prefix="release-"))
            release.save(folder / names[0].name)
            where = f"it is in {folder}"
        told = "path: epsilon is entered, but the release could not be written there"
        interrupted = not isinstance(error, Exception)
        failed = error if interrupted else OSError(f"{told} ({error}): {where}")
        failed.release = release
        if interrupted:
            error.add_note(f"{told}: {where}")
            raise
        raise failed from error


def _check_version(name, settings):
    """Refuse a plan with other settings than today's plans, or its mechanism's, have."""
    mechanism = settings["mechanism"]
    # the source of one's own mechanism is compared
    kind = None if "source" in mechanism else _MECHANISMS.get(mechanism["kind"], "")
    of_plan = {"source": ""} | settings
    for known, given in ((ReleasePlan, of_plan), (kind, mechanism["settings"])):
        if known is None:
            continue
        today = is_dataclass(known) and {
            item.name for item in fields(known) if item.init
        }
        if given.keys() != today:
            raise ValueError(
                f"path must hold a plan of this version of ppm; {name} has other settings: "
                "make the plan again"
            )


def _quoted(names):
    """All these names, also many."""
    return ", ".join(map(repr, names))


def kinds_of(column):
    """Kinds of a column's labels, such as "numbers", in order; of missing ones none."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.categories
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in _NUMBERS:
        return ["numbers"]
    if not kind.startswith("mixed"):
        return {"empty": []}.get(kind, [_KINDS.get(kind, kind)])
    types = {
        "numbers" if _is_number(value) else type(value).__name__
        # not the different ones alone: some cannot be told apart, such as lists
        for value in column.dropna()
    }
    return sorted({_KINDS.get(one, one) for one in types})


# what pandas and Python call them
_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}
_KINDS = {
    "string": "text",
    "str": "text",
    "boolean": "true and false",
    "bool": "true and false",
}
# of these kinds, labels of one are not those of another, though they may look alike
_COMPARED = {"numbers", "text", "true and false"}


def _is_number(value):
    return isinstance(value, numbers.Number) and not isinstance(value, bool | np.bool_)


def _texts(column):
    """Labels of a column as text, in which equal numbers are the same, as 1 and 1.0."""
    codes, values = pd.factorize(column, use_na_sentinel=False)
    texts, places = np.unique(
        [_text(one) for one in values.tolist()], return_inverse=True
    )
    return pd.Categorical.from_codes(places[codes], texts.astype(object))


def _text(value):
    if _is_number(value) and value == value // 1:
        value = int(value)
    return str(value)


def _check_numbers(name, column, table):
    """Refuse what is no finite number, in words that tell neither how many there are nor where."""
    try:
        if isinstance(table[column].dtype, pd.CategoricalDtype):
            raise ValueError
        as_list(name, table[column])
    except ValueError:
        raise ValueError(
            f"{name} must have finite numbers alone in {column!r}, none missing, and no "
            "text or pandas Categorical"
        ) from None


def _columns(table, *names):
    """The columns of a table that are named in some of these lists, in its own order."""
    named = {name for some in names for name in as_names(some)}
    return table[[name for name in table if name in named]]


def _written(value):
    """What JSON writes: lists for tables and arrays, null for what is none, other things as text."""
    if isinstance(value, Mapping):
        return {key: _written(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    if isinstance(value, pd.DataFrame):
        return _written(value.to_dict("records"))
    if isinstance(value, np.ma.MaskedArray):
        # nothing in the place of what a mask hides
        return _written(value.tolist())
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, str | int | float):
        # JSON has no NaN and no infinity
        return None if isinstance(value, float) and not np.isfinite(value) else value
    if np.asarray(value).dtype.kind in "mM":
        # NumPy would write nanoseconds
        return np.asarray(value).astype(str).tolist()
    plain = mechanisms.plain(value)
    return _written(plain) if isinstance(plain, list | int | float) else str(value)


def _table_hash(table):
    """SHA-256 of a table: its columns, their types and values, and their order."""
    hashed = hashlib.sha256()
    for name, column in table.items():
        kind = [column.dtype]
        if isinstance(column.dtype, pd.CategoricalDtype):
            kind += [column.cat.categories.tolist()]
        hashed.update(_canonical([name, kind, column.tolist()], str).encode())
    return hashed.hexdigest()


def _canonical(content, default=mechanisms.plain):
    return json.dumps(content, sort_keys=True, default=default)


def _digest(public):
    return hashlib.sha256(_canonical(public).encode()).hexdigest()


def saved_digest(path):
    """Digest of what stands in a file, or nothing if it is no plan."""
    try:
        # a device may have no end
        text = path.read_text("utf-8") if path.is_file() else ""
        return _digest(json.loads(text)["plan"])
    except (OSError, KeyError, TypeError, ValueError):
        return None


def versions():
    """Versions of what makes a release."""
    import ppm  # which imports this file

    return {"ppm": ppm.__version__} | {
        name: metadata.version(name) for name in ("numpy", "opendp") if find_spec(name)
    }
