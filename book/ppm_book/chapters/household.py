"""Take one household away: the eight households, as frames and as a picture that one can touch."""

import string
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import log_softmax

import ppm
from ppm.checks import as_ends, check_count, check_counts, check_flag, check_number
from ppm_book.chapters import page, plots, still

HOUSEHOLDS = list("ABCDEFGH")
COUNTS = np.array([3, 4, 4, 5, 5, 6, 7, 18])
# values of μ of chapter 3: the lowest, the highest, and how many
GRID = (2, 12, 101)
# largest count, and length of a name, that the picture to touch has room for
MOST, LONGEST = 100, 3
# above 2Δ by less than this is rounding
ROUNDING = 1e-9
TITLE = "Take one household away"

# of the frames of chapter 1
SHAPE, RATE = 1.0, 0.1  # of the prior of μ
# what the panels show: numbers of visits, values of μ, and so many points of a curve
VISITS, HIGHEST, POINTS = np.arange(25), 16, 25
PANELS = {
    "weights": {
        "label": "Weights; outline: before it left",
        "axis": "Household and count",
        "names": [
            f"{name} {count}" for name, count in zip(HOUSEHOLDS, COUNTS, strict=True)
        ],
    },
    "ratio": {
        "label": "Log ratio of μ, with against without (nats)",
        "height": 120,
        "range": [0, HIGHEST],
        "axis": "Mean number of visits, μ",
    },
    "released": {
        "label": "Released counts, %; outline: the eight",
        "height": 90,
        "outline": 100 * np.bincount(COUNTS, minlength=VISITS.size) / COUNTS.size,
        "range": [-0.5, VISITS[-1] + 0.5],
        "axis": "Visits",
    },
}


class Leaving(NamedTuple):
    """One household leaves: the weights of all eight before and after, and draws of μ before."""

    place: int
    before: np.ndarray
    after: np.ndarray
    mu: np.ndarray

    def ratio(self, mu):
        """Log ratio of μ, with the household against without it."""
        before, after = posterior(self.before), posterior(self.after)
        return before.logpdf(mu) - after.logpdf(mu)

    def local_bound(self):
        """Δ of the eight."""
        log_p = stats.poisson.logpmf(COUNTS, self.mu[:, None])
        return (self.before * np.abs(log_p)).max()


def moving(hint, *, scale=1.0, shift=0.0, draws=1000, seed=20220):
    """Picture of what changes when one of the eight households leaves, and the others stay.

    Parameters
    ----------
    hint : str
        What to predict and try.
    scale, shift, draws, seed
        Settings of the chapter: c at first, g, S, and the seed of all random numbers.

    Returns
    -------
    What a notebook cell displays, as ``ppm_book.chapters.page.moving`` does.

    Examples
    --------
    >>> from ppm_book.chapters import household
    >>> picture = household.moving("Predict before you press.", draws=50)
    >>> [slider["label"] for slider in picture.content["sliders"]]
    ['Leaving household', 'Scale c']
    """
    # those of a fit by hand: the first of its streams gives the weights
    _, second, _ = np.random.SeedSequence(seed).spawn(3)
    model = ppm.GammaPoisson(COUNTS, shape=SHAPE, rate=RATE)
    everybody = ppm.fit(model, ppm.ByRisk(), draws=draws, random_seed=seed).weights

    def frame(place, c):
        before = np.clip(c * everybody + shift, 0, 1)
        after = np.where(np.arange(COUNTS.size) == place, 0, before)
        rng = np.random.default_rng(second)
        mu = posterior(before).rvs(draws, random_state=rng)
        leaving = Leaving(place, before, after, mu)
        return (
            f"{said_of_bounds(leaving)} {said_of_release(leaving)}",
            [
                {"bars": after, "outline": before},
                drawn_ratio(leaving),
                {"bars": 100 * release(after).pmf(VISITS)},
            ],
        )

    return page.moving(
        "One household leaves, the others stay",
        {
            "Leaving household": {name: place for place, name in enumerate(HOUSEHOLDS)},
            "Scale c": {f"{c:g}": c for c in sorted({0, 0.2, 0.4, 0.6, 0.8, 1, scale})},
        },
        frame,
        # H, whose weight is 0, would leave a flat line
        start=[HOUSEHOLDS.index("G"), scale],
        hint=hint,
        panels=[*PANELS.values()],
    )


def posterior(weights):
    """Distribution of μ when the eight have these weights."""
    return stats.gamma(SHAPE + weights @ COUNTS, scale=1 / (RATE + weights.sum()))


def release(weights):
    """Distribution of a released count."""
    rate = RATE + weights.sum()
    return stats.nbinom(SHAPE + weights @ COUNTS, rate / (1 + rate))


def drawn_ratio(leaving):
    """The log ratio over the draws that gave Δ, and its largest value, between ±2Δ."""
    twice = 2 * leaving.local_bound()
    mu = np.linspace(leaving.mu.min(), leaving.mu.max().clip(max=HIGHEST), POINTS)
    at = leaving.mu[np.abs(leaving.ratio(leaving.mu)).argmax()]
    height = leaving.ratio(at)
    dot = {"at": [at, height], "words": f"{abs(height):.2f}", "below": bool(height < 0)}
    return {
        "lines": [{"x": mu, "y": leaving.ratio(mu)}],
        "dots": [dot] if at <= HIGHEST else [],
        "across": [[round(twice, 3), f"2Δ {twice:.2f}"], [round(-twice, 3), "−2Δ"]],
    }


def said_of_bounds(leaving):
    delta = leaving.local_bound()
    return (
        f"Δ = {delta:.2f} nats, ε of one release = {2 * delta:.2f} nats. Without "
        f"{HOUSEHOLDS[leaving.place]} the log density of μ changes by "
        f"{np.abs(leaving.ratio(leaving.mu)).max():.2f} nats at most, over the draws that gave Δ."
    )


def said_of_release(leaving):
    released = release(leaving.after)
    return (
        f"A released count is then {released.mean():.1f} on average, and 9 of 10 lie "
        f"between {released.ppf(0.05):.0f} and {released.ppf(0.95):.0f}; the eight "
        f"households' own average is {COUNTS.mean():.1f}."
    )


class State(NamedTuple):
    """Everybody is in, or one household is away: what the picture to touch shows.

    Attributes
    ----------
    means : array (values,)
        The public values of μ.
    weights, left : array (households,)
        Weights with everybody, and when one is away, whose weight is then 0.
    delta : float
        Δ of everybody: the largest weighted bound, in nats.
    before, after : array (values,)
        Log probability of each μ, with everybody and when one is away.
    """

    means: np.ndarray
    weights: np.ndarray
    left: np.ndarray
    delta: float
    before: np.ndarray
    after: np.ndarray

    @property
    def ratio(self):
        """Log ratio of each μ, with everybody against without the one who is away."""
        return self.before - self.after

    @property
    def loss(self):
        """The largest log ratio, up or down."""
        return np.abs(self.ratio).max()

    @property
    def at(self):
        """The μ at which the log ratio is largest."""
        return self.means[np.abs(self.ratio).argmax()]


def state(
    counts,
    away=None,
    *,
    scale=1.0,
    shift=0.0,
    truncate_at=None,
    again=False,
    grid=GRID,
):
    """Take one household away, and compute both pseudo posteriors on a grid of μ, exactly.

    The page computes the same in ``book/_static/touch.js``.

    Parameters
    ----------
    counts : array_like of int (households,)
        Visits, 2 to 26 whole numbers from 0 to 100.
    away : int, optional
        Place of the household that is away, from 0; by default nobody is.
    scale, shift, truncate_at
        The weights' c, g and M, as in ``ppm.record_weights``.
    again : bool, default False
        Whether the others' weights are computed again without the household, or stay frozen.
    grid : (float, float, int), default (2, 12, 101)
        Lowest and highest μ, both public, and their number. The prior is uniform on the grid.

    Returns
    -------
    State

    Examples
    --------
    >>> from ppm_book.chapters import household
    >>> found = household.state([3, 4, 4, 5, 5, 12, 7, 18], 7, truncate_at=5, again=True)
    >>> round(float(found.loss), 2), round(float(2 * found.delta), 2)
    (10.05, 8.73)
    """
    counts, means = _checked_counts(counts), np.linspace(*_checked_grid(grid))

    def weighed(log_p):
        bounds = ppm.record_bounds(log_p)
        return ppm.record_weights(
            bounds, scale=scale, shift=shift, truncate_at=truncate_at
        )

    log_p = stats.poisson.logpmf(counts, means[:, None])
    weights = weighed(log_p)
    left = weights.copy()
    if away is not None and again:
        left = np.insert(weighed(np.delete(log_p, away, axis=1)), away, 0.0)
    elif away is not None:
        left[away] = 0.0
    return State(
        means=means,
        weights=weights,
        left=left,
        delta=ppm.local_bound(log_p, weights),
        before=log_softmax(log_p @ weights),
        after=log_softmax(log_p @ left),
    )


def touch(
    *,
    counts=COUNTS,
    names=None,
    grid=GRID,
    scale=1.0,
    shift=0.0,
    truncate_at=None,
    away=None,
    again=False,
    breaking=None,
    threshold=True,
    switch=True,
    title=TITLE,
    hint="",
):
    """Picture that one can touch: move the households, take one away, and see its log ratio.

    ``book/_static/touch.js`` computes and draws it on the page. Without the script, as in a
    notebook or on paper, its start stands there as a still picture.

    Parameters
    ----------
    counts : array_like of int (households,)
        Visits at the start, 2 to 26 whole numbers from 0 to 100.
    names : list of str, optional
        Of the households, all different, up to 3 letters each; by default A, B, and so on.
    grid, scale, shift, truncate_at, again
        As in ``state``. The reader moves c, M, and frozen or again; g and the grid stay.
    away : str, optional
        Name of the household that is away at first; by default nobody is.
    breaking : dict of dicts, optional
        By the words of a button, the state that it leads to: any of ``counts``, ``scale``,
        ``truncate_at``, ``away``, ``again``. By default there is no such button.
    threshold, switch : bool, default True
        Whether the reader can move M, and have the others' weights computed again.
    title : str, default "Take one household away"
        What stands above the picture.
    hint : str, optional
        What to predict and try.

    Returns
    -------
    IPython.display.HTML
        What a notebook cell displays. Its attribute ``state`` is the state at the start,
        ``broken`` those of ``breaking`` by their words, ``content`` what the page has of them.

    Examples
    --------
    >>> from ppm_book.chapters import household
    >>> picture = household.touch(away="A")
    >>> round(float(picture.state.loss), 2), picture.broken
    (3.87, {})
    """
    from IPython.display import HTML

    counts = _checked_counts(counts)
    names = _checked_names(names, counts.size)
    low, high, number = _checked_grid(grid)
    given = {
        "counts": counts,
        "scale": scale,
        "truncate_at": truncate_at,
        "away": away,
        "again": again,
    }
    fixed = {"shift": check_number("shift", shift, at_least=-1, at_most=1)}
    start = _checked_settings(given, names)
    broken = {}
    for words, other in (breaking or {}).items():
        if not isinstance(other, dict) or not {*other} <= {*given}:
            raise ValueError(
                f"breaking: {words!r} must be a dict of any of {', '.join(given)}"
            )
        broken[words] = _checked_settings(given | other, names, f"{words}: ")
    content = {
        "title": title,
        "names": names,
        "colours": [colour_of(name) for name in names],
        "grid": [low, high, number],
        **fixed,
        "start": start,
        "breaking": broken,
        "threshold": check_flag("threshold", threshold),
        "switch": check_flag("switch", switch),
        "hint": hint,
    }

    first = state(**start, **fixed, grid=grid)
    fallback = still.element(
        drawn_still(first, names, start["counts"], start["away"]),
        title,
        " ".join(said_of(first, names, start["away"], start["again"])),
        "move the households, and take them away",
    )
    picture = HTML(
        f'<div class="moving touch">{fallback}{page.as_script(content)}</div>'
    )
    picture.content, picture.state = content, first
    picture.broken = {
        words: state(**other, **fixed, grid=grid) for words, other in broken.items()
    }
    return picture


def said_of(found, names, away=None, again=False):
    """What the picture says of a state, in one sentence about the loss and one about the weights."""
    twice = 2 * found.delta
    bound = f"2Δ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{twice:.2f}"
    if away is None:
        return f"Nobody is away. Δ = {found.delta:.2f} nats, and {bound}.", ""
    who = names[away]
    changes = f"Without {who} the log probability of a μ changes by up to {found.loss:.2f} nats"
    if found.loss > twice + ROUNDING:
        said = f"{changes}: more than {bound}."
    elif twice == 0:
        said = f"All weights are 0, so no probability changes: {bound}."
    elif found.loss < ROUNDING:
        said = f"Without {who} no probability changes: 0.00 nats, where {bound}."
    else:
        # short of 2Δ, however near
        percent = min(99, np.floor(100 * found.loss / twice + 0.5))
        part = "less than 1" if percent < 1 else f"{percent:.0f}"
        said = f"{changes}: {part} % of {bound}."
    pairs = zip(names, found.weights, found.left, strict=True)
    moved = [
        f"{name} {before:.2f} → {after:.2f}".replace(" ", "\N{NO-BREAK SPACE}")
        for name, before, after in pairs
        if name != who and abs(after - before) > 0.005
    ]
    if moved:
        return said, f"The others’ weights: {', '.join(moved)}."
    if again:
        return said, "The others’ weights, computed again, are as before."
    return said, "The others keep their weights."


def colour_of(name):
    """H has a colour of its own."""
    return plots.COLOURS["H" if name == "H" else "Others"]


def drawn_still(found, names, counts, away=None):
    """Figure of a state: the households, both pseudo posteriors, and the log ratio in its band."""
    mechanism = plots.COLOURS["Weighted"]
    figure, (row, middle, low) = plots.panels(
        3, size=(5.2, 1.75), height_ratios=[1, 1, 1.6]
    )
    level = {count: 0 for count in counts}
    for place, (name, count) in enumerate(zip(names, counts, strict=True)):
        colour = colour_of(name)
        at = count, level[count]
        level[count] += 1
        edge = {"facecolor": "none", "edgecolor": colour}
        row.scatter(*at, 200, linestyle=":" if place == away else "-", **edge)
        row.scatter(*at, 200 * found.left[place], color=colour, alpha=0.4, linewidth=0)
        row.annotate(name, at, ha="center", va="center", fontsize=9)
    row.set(
        title="Visits of each household; area of a disc: its weight",
        ylim=(-0.9, max(2.5, max(level.values()))),
        yticks=[],
    )
    row.margins(x=0.05)
    middle.fill_between(found.means, np.exp(found.before), color=mechanism, alpha=0.2)
    middle.plot(found.means, np.exp(found.before), color=mechanism)
    middle.set(title="Pseudo posterior of the mean μ", yticks=[], ylim=(0, None))
    told = {"xy": (0.98, 0.8), "xycoords": "axes fraction", "ha": "right"}
    middle.annotate("with everybody", color=mechanism, **told)
    if away is not None:
        middle.plot(found.means, np.exp(found.after), color="black", linestyle="--")
        told["xy"] = (0.98, 0.55)
        middle.annotate(f"without {names[away]} (dashed)", **told)
        low.plot(found.means, found.ratio, color=mechanism, linewidth=2)
    twice = 2 * found.delta
    low.axhspan(-twice, twice, color=mechanism, alpha=0.1, linewidth=0)
    for height, words in ((twice, "2Δ"), (-twice, "−2Δ")):
        low.axhline(height, **plots.LEVEL)
        low.annotate(words, (found.means[-1], height), va="bottom", ha="right")
    low.set(
        title="Log ratio of each μ, with against without (nats)",
        xlabel="Mean number of visits, μ",
    )
    low.margins(y=0.1)
    for axes in (row, middle, low):
        axes.grid(False)
        axes.title.set_size(10)
    return figure


def _checked_counts(counts):
    """Counts as an array; ``ValueError`` where they are none, or too many or too large."""
    found = check_counts("counts", counts)
    if not 2 <= found.size <= len(string.ascii_uppercase) or found.max() > MOST:
        raise ValueError(
            f"counts must be 2 to {len(string.ascii_uppercase)} whole numbers from 0 to "
            f"{MOST}; got {found.size} of them"
        )
    return found


def _checked_names(names, number):
    names = list(string.ascii_uppercase[:number] if names is None else names)
    fits = all(isinstance(name, str) and 0 < len(name) <= LONGEST for name in names)
    if not fits or len({*names}) != number or len(names) != number:
        raise ValueError(
            f"names must be {number} different ones of 1 to {LONGEST} letters, one for each "
            "household"
        )
    return names


def _checked_grid(grid):
    low, high = as_ends("grid: lowest and highest μ", grid[:2])
    check_number("grid: lowest μ", low, above=0)
    number = check_count("grid: number of values", *grid[2:], at_least=2)
    return float(low), float(high), number


def _checked_settings(given, names, where=""):
    """What the page needs of a state; ``away`` becomes a place."""
    counts = _checked_counts(given["counts"])
    if counts.size != len(names):
        raise ValueError(
            f"{where}counts must be {len(names)} whole numbers, one for each household"
        )
    away, truncate_at = given["away"], given["truncate_at"]
    if away is not None and away not in names:
        raise ValueError(f"{where}away must be None or one of {', '.join(names)}")
    if truncate_at is not None:
        truncate_at = check_number(f"{where}truncate_at", truncate_at, above=0)
    return {
        "counts": counts.tolist(),
        "scale": check_number(f"{where}scale", given["scale"], above=0, at_most=1),
        "truncate_at": truncate_at,
        "away": None if away is None else names.index(away),
        "again": check_flag(f"{where}again", given["again"]),
    }
