"""Pictures that a reader moves on the page, without a kernel: their numbers, for a script to draw.

A cell shows such a picture; in Jupyter, where a kernel is at hand, it is a line of text. On the
page ``book/_static/moving.js`` draws it, and a figure beside it stays for print and for browsers
without scripts.
"""

import html
import json
import math

import numpy as np
from ppm_book.survey.expenditure import SIMULATED

from ppm._random import generator
from ppm._validation import as_numbers, check_number
from ppm.disclosure import detection_limit
from ppm.utility import median_errors
from ppm.weights import record_weights

# what a cell hands to the page
MOVING_TYPE = "application/vnd.ppm.moving+json"
# steps of c, g and M; what a chapter was run with comes in between
_SCALES = tuple(step / 10 for step in range(1, 11))
_SHIFTS = tuple(step / 10 for step in range(-5, 6))
_LIMITS = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
# bins of a distribution of bounds
_BINS = 14
# rate of false alarms at which a promise is put into words, and the words up to each limit of
# what a test can find
FALSE_ALARMS = 0.05
_WORDS = ((0.15, "excludes"), (0.5, "excludes some"), (0.95, "excludes little"))
# incomes at which bins meet; the outer ones have no other end
_EDGES = np.arange(0, 210_000, 10_000)


class MovingPicture:
    """What a script needs to draw a picture at every place of its sliders.

    Parameters
    ----------
    content : dict
        ``kind``, ``name``, ``title``, ``hint``, ``sliders`` and what the kind needs, as JSON.
    """

    def __init__(self, content):
        self.content = content

    def __repr__(self):
        sliders = ", ".join(slider["label"] for slider in self.content["sliders"])
        return f"{self.content['title']} (in the book this can be moved: {sliders})"

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), MOVING_TYPE: self.content}


def on_the_page(content):
    """A picture's place on the page; without scripts, and in print, it is not there.

    Parameters
    ----------
    content : dict
        As :class:`MovingPicture` has it.

    Returns
    -------
    str
        HTML.
    """
    # a script element ends at the first "</script", wherever it stands
    data = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    data = data.replace("<", "\\u003c")
    name = html.escape(content["name"])
    return (
        f'<div class="moving" id="{name}" hidden>'
        f'<script type="application/json">{data}</script></div>'
    )


def show_moving(outputs):
    """Put the places of moving pictures into the outputs of a cell.

    Parameters
    ----------
    outputs : list of dict
        Outputs of an executed notebook; changed.
    """
    for output in outputs:
        content = output.get("data", {}).get(MOVING_TYPE)
        if content:
            output["data"] = {"text/html": on_the_page(content)}


def _slider(label, values, at, shown=None):
    """A slider: what it moves, the words for each of its places, and where it begins."""
    shown = shown or [f"{value:g}" for value in values]
    return {"label": label, "short": label.split()[-1], "shown": shown, "at": at}


def _with(steps, value):
    """Steps in order, a chapter's own value among them, and its place."""
    found = sorted({*steps, value})
    return found, found.index(value)


def moving_weights(
    synthesizer, bounds, *, names, scale=1.0, shift=0.0, draws=1000, random_seed=None
):
    """Weights, Δ and ε of a few counts by c, g and M, with a new fit at every step.

    Parameters
    ----------
    synthesizer : ppm.GammaPoisson
        Model and records.
    bounds : array_like, shape (records,)
        Bounds of the records under the unweighted posterior, in nats.
    names : sequence of str
        Names of the records.
    scale, shift : float
        The c and g at which the picture begins; at first there is no M.
    draws : int, default 1000
        Draws of each fit.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness, the same for the fit of every step.

    Returns
    -------
    MovingPicture
        What a cell shows.

    Raises
    ------
    ValueError
        As :func:`ppm.record_weights` and the fits do, or if there is not one name for each record.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3. A weighted bound of a count is reached at the
    smallest or the largest draw of μ, so that these two of every fit are all that the page needs.

    Examples
    --------
    >>> import ppm
    >>> from ppm_book import page
    >>> counts = ppm.GammaPoisson([3, 4, 18], shape=1.0, rate=0.1)
    >>> page.moving_weights(counts, [4.5, 3.6, 14.8], names="ABC", draws=10, random_seed=1)
    Weights, Δ and ε as c, g and M move (in the book this can be moved: Scale c, Shift g, Limit M)
    """
    bounds = np.asarray(bounds, dtype=np.float64)
    if not len(names) == bounds.size == synthesizer.records:
        raise ValueError(
            f"names and bounds must have one entry for each of the {synthesizer.records} records; "
            f"got {len(names)} and {bounds.size}"
        )
    scales, first = _with(_SCALES, check_number("scale", scale, above=0))
    shifts, second = _with(_SHIFTS, check_number("shift", shift))
    limits = (*_LIMITS, None)
    # an int stands for the same stream each time; a Generator would move on
    seed = random_seed
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**63))
    fits, ends = {}, []
    for c in scales:
        for g in shifts:
            for limit in limits:
                weights = record_weights(bounds, scale=c, shift=g, truncate_at=limit)
                key = weights.tobytes()
                if key not in fits:
                    fits[key] = _ends(synthesizer, weights, draws, seed)
                ends.append(fits[key])
    return MovingPicture({
        "kind": "weights",
        "name": "moving-weights",
        "title": "Weights, Δ and ε as c, g and M move",
        "hint": (
            "Try this: move c down, then g. All weights fall, and Δ with them. Then move g up "
            "from 0 with c = 1: soon the riskiest record has a weight above 0 again, and it alone "
            "sets Δ. A low M takes out record after record. Every step is a new fit, as in step 2 "
            "of the algorithm."
        ),
        "sliders": [
            _slider("Scale c", scales, first),
            _slider("Shift g", shifts, second),
            _slider(
                "Limit M", limits, len(limits) - 1,
                [*(f"{limit:g} nats" for limit in _LIMITS), "none"],
            ),
        ],
        "names": list(names),
        "counts": [int(count) for count in synthesizer.counts],
        "factorials": [math.lgamma(count + 1) for count in synthesizer.counts],
        "bounds": bounds.tolist(),
        "scales": scales,
        "shifts": shifts,
        "limits": limits,
        "ends": ends,
    })


def _ends(synthesizer, weights, draws, seed):
    """Smallest and largest draw of μ, in figures enough for six of a bound."""
    # as `fit` draws them, without the log-likelihoods
    mu = synthesizer.posterior(weights).rvs(size=(1, draws), random_state=generator(seed))
    return [float(f"{end:.7g}") for end in (mu.min(), mu.max())]


def moving_contraction(study):
    """Local bounds of many databases by their size n.

    Parameters
    ----------
    study : ppm.studies.ContractionStudy
        What :func:`ppm.studies.contraction` returned, for several sizes.

    Returns
    -------
    MovingPicture
        What a cell shows.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 4, the first figure of the simulation study.

    Examples
    --------
    >>> import ppm
    >>> from ppm_book import page
    >>> study = ppm.studies.contraction([30, 60], replicates=5, draws=20, random_seed=1)
    >>> page.moving_contraction(study)
    Local bounds as databases grow (in the book this can be moved: Records n)
    """
    bound = study.dataset["local_bound"]
    # lists keep their order in a notebook's file, dictionaries do not
    mechanisms = [
        {
            "name": str(name),
            "sizes": [
                _distribution(bound.sel(mechanism=name, size=n).values, study.truncate_at)
                for n in bound["size"].values
            ],
        }
        for name in bound["mechanism"].values
    ]
    sizes = [f"{n:,}" for n in bound["size"].values]
    return MovingPicture({
        "kind": "contraction",
        "name": "moving-contraction",
        "title": "Local bounds as databases grow",
        "hint": (
            "Try this: move n from the left end to the right. Unweighted keeps moving away from "
            "0. Weighted moves too, but slowly. Weighted-M becomes narrow and stops just above M, "
            "where most of its databases then lie."
        ),
        "sliders": [_slider("Records n", sizes, 0, sizes)],
        "databases": int(bound.sizes["replicate"]),
        "limit": study.truncate_at,
        "mechanisms": mechanisms,
    })


def _distribution(bounds, limit):
    """What is drawn of a distribution of bounds."""
    counts, _ = np.histogram(bounds, _BINS)
    smallest, median, largest = np.quantile(bounds, (0.0, 0.5, 1.0)).tolist()
    return {
        "smallest": smallest,
        "median": median,
        "largest": largest,
        "above": float((bounds > limit).mean()),
        "heights": (counts / counts.max()).round(3).tolist(),
    }


def promise(epsilon):
    """What a strict ε excludes, in a word or two, by the best test for a record's value.

    Parameters
    ----------
    epsilon : float
        An ε that holds for every database, in nats.

    Returns
    -------
    str
        From "excludes" to "hardly excludes".
    """
    found = detection_limit(FALSE_ALARMS, epsilon)
    return next((word for limit, word in _WORDS if found < limit), "hardly excludes")


def moving_release(income, synthetic, errors, *, statistics, simulated):
    """Incomes of a strict release beside the original ones, and its errors, by ε.

    Parameters
    ----------
    income : array_like, shape (records,)
        Confidential incomes, in dollars.
    synthetic : dict of str to dict of float to array_like, shape (releases, records)
        Name of a mechanism to its ε in nats to synthetic incomes, of which the first are drawn.
    errors : dict of str to dict of float to pandas.DataFrame
        The same with what :func:`ppm.utility.release_errors` returned.
    statistics : sequence of str
        Columns of the errors that are told, but for those that are NaN.
    simulated : bool
        Whether the incomes are simulated.

    Returns
    -------
    MovingPicture
        What a cell shows: shares of incomes in bins, and the median size of the releases' errors.

    Examples
    --------
    >>> import ppm
    >>> from ppm_book import page
    >>> income, found = [10_000.0, 30_000.0], {1.0: [[20_000.0, 30_000.0]]}
    >>> errors = {1.0: ppm.utility.release_errors(income, found[1.0])}
    >>> page.moving_release(
    ...     income, {"Limits": found}, {"Limits": errors}, statistics=["mean"], simulated=True
    ... )
    A strict release beside the original (in the book this can be moved: Strict ε, Mechanism)
    """
    names = list(synthetic)
    widths = list(synthetic[names[0]])
    middle = median_errors(errors)
    statistics = [name for name in statistics if middle[name].notna().all()]
    # lists keep their order in a notebook's file, dictionaries do not
    mechanisms = [
        [
            {
                "shares": _shares(synthetic[name][width][0]),
                "errors": [
                    [statistic, float(middle.loc[(name, f"{width:g}"), statistic])]
                    for statistic in statistics
                ],
            }
            for width in widths
        ]
        for name in names
    ]
    words = [
        {
            "epsilon": width,
            "word": promise(width),
            "detection": float(detection_limit(FALSE_ALARMS, width)),
        }
        for width in widths
    ]
    hint = (
        "Try this: move ε to the right. The promise fades from “excludes” to “hardly excludes”. "
        "Do the filled bars come nearer to the outline, and do the errors fall? Then keep ε and "
        "change the mechanism: which follows the outline most closely, and whose groups have small "
        f"errors? “{_WORDS[0][1]}” stands where a test with {100 * FALSE_ALARMS:g} % false alarms "
        f"detects less than {100 * _WORDS[0][0]:g} %, “hardly excludes” where it can detect "
        f"{100 * _WORDS[-1][0]:g} %."
    )
    return MovingPicture({
        "kind": "release",
        "name": "moving-release",
        "title": "A strict release beside the original",
        "hint": f"{hint} {SIMULATED}" if simulated else hint,
        "sliders": [
            _slider("Strict ε", widths, 0, [f"{width:g} nats" for width in widths]),
            _slider("Mechanism", names, 0, names),
        ],
        "alarms": FALSE_ALARMS,
        "words": words,
        "original": _shares(income),
        "mechanisms": mechanisms,
        "edges": [int(edge) // 1000 for edge in _EDGES],
        "unit": "Income, thousand dollars; the outer bins are open",
    })


def _shares(income):
    """Share of the incomes in each bin."""
    income = as_numbers("income", income)
    counts = np.bincount(np.searchsorted(_EDGES, income, side="right"), minlength=_EDGES.size + 1)
    return (counts / income.size).round(5).tolist()
