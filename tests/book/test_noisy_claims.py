"""A claim about numbers with noise holds two standard errors beyond its border, and not nearer.

``x`` says how many standard errors a number lies beyond the border of its claim: the claim is true
at 2.5, and false at 1.5, -1.5 and -2.5.
"""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from claims import MODULES, ends, evaluated

# what reads an error, or an end of an interval
NOISY = re.compile(
    r"surely_less|±|\.sem\(|\b(?:low|high)\[|\.low\b|\.high\b|\.difference\(|\[\"error\"\]"
)
# one asks for a bound of a share at no count at all; the other's error is that of an estimator
EXACT = {"further-right-none", "largest-loss-and-error"}


# ---- contraction ---------------------------------------------------------------------------------

SPREAD = "Weighted-M: exponent of the spread of bounds"
SHIFT = "Weighted-M: shift of the mean in standard deviations"
GROWTH = "Unweighted: growth of the median bound"
DRIFT = "Weighted: growth of the median bound"
MEAN = "Weighted-M: average of the mean"
PAPER = {"sizes": [100, 400, 1600, 6400], "mean": 100, "truncate_at": 3.5}


def measured(border, x, error=0.1):
    return {"value": border + x * error, "error": error}


def contraction(**given):
    """Values that are beyond every border, but for those given."""
    names = {"growth": GROWTH, "drift": DRIFT, "spread": SPREAD}
    sure = {"growth": (9, 0.1), "drift": (1, 0.1), "spread": (-1, 0.1)}
    values = {
        names[name]: dict(zip(("value", "error"), given.get(name, pair), strict=True))
        for name, pair in sure.items()
    }
    return {"values": values}


AROUND = {
    "gathered": np.array([3.5, 3.6]),
    "truncate_at": 3.5,
    "near_m": True,
    "biased": True,
}
STOPPED = {
    "summary": {"median": {"Weighted-M": pd.Series([3.5, 3.5])}},
}


def share_from(border, x):
    return ends(low=border + 0.1 * (x - 2), high=border + 0.1 * (x + 2))


def of_arrays(name, first, last):
    """An entry of two sizes."""
    pair = np.array([first, last])
    return {"values": {name: {"value": pair[:, 0], "error": pair[:, 1]}}}


# ---- application ---------------------------------------------------------------------------------


def fit(bound, error):
    told = ends(error=error, agree=True, r_hat_log_likelihood=1.0)
    return ends(local_bound=bound, diagnostics=told)


def utility(one, other, **bias):
    rows = {
        (name, who): {"typical error": value, "±": error, "bias": bias.get(who, 0.0)}
        for name in ("mean", "tail")
        for who, (value, error) in ({"others": (9.0, 0.0)} | one | other).items()
    }
    table = pd.DataFrame([*rows.values()], pd.MultiIndex.from_tuples([*rows]))
    four = dict.fromkeys(("Unweighted", "DPweighted", "Countweighted"), fit(1, 0))
    return {"utility": table, "four": four, "tail": "tail"}


def away(mean=(), tail=()):
    """Typical errors of DPweighted and EMweighted with their own, at each setting."""
    rows = {
        (name, place): {
            (kind, who): pair[at]
            for at, kind in enumerate(("error (%)", "±"))
            for who, pair in zip(("DPweighted", "EMweighted"), pairs, strict=True)
        }
        for name, found in (("mean", mean), ("tail", tail))
        for place, pairs in enumerate(found)
    }
    index = pd.MultiIndex.from_tuples([*rows], names=["statistic", "(c, g)"])
    table = pd.DataFrame([*rows.values()], index)
    table.columns = pd.MultiIndex.from_tuples(table.columns)
    fits = {place: (fit(1, 0), fit(1, 0)) for place in range(len(mean or tail))}
    return {"away": table, "fits": fits, "tail": "tail"}


def four(**found):
    names = ("Unweighted", "DPweighted", "EMweighted", "Countweighted")
    return {"four": {who: fit(*found.get(who, (9.0, 0.1))) for who in names}}


def by_education(unweighted, alone):
    typical = {("groups", "Unweighted"): unweighted, ("groups", "Alone"): alone}
    rest = {"groups": "groups", "ALONE": "Alone", "apart": -9.0}
    fits = {"four": {"Unweighted": fit(1, 0)}, "published": fit(1, 0)}
    return {"typical": typical} | rest | fits


# ---- settings, audit and the chapters on strict releases -----------------------------------------


def priors(usual, wide):
    rows = [(*one, True) for one in (usual, wide)]
    columns = ["Δ", "±", "the only one of its kind"]
    return {"priors": pd.DataFrame(rows, [1.0, 10.0], columns)}


def verdicts(x, statistic):
    """Two models and two statistics, of which one pair differs by x errors, the other surely."""
    rows = {
        ("mean", "A", "s"): ("DPweighted", 0.0 if statistic else -9.0, 0.0),
        ("90th percentile", "A", "s"): ("", x if statistic else 0.0, 2.0),
        ("90th percentile", "B", "s"): (
            "EMweighted",
            50.0 if statistic else x,
            0.0,
        ),
    }
    index = pd.MultiIndex.from_tuples([*rows], names=["statistic", "model", "(c, g)"])
    return pd.DataFrame([*rows.values()], index, ["closer", "difference", "±"])


def losses(x):
    index = pd.MultiIndex.from_tuples(
        [("Weighted-M", 100)] * 4, names=["mechanism", "size"]
    )
    study = pd.DataFrame(
        {"loss_integrated": 5.0 + 0.1 * x, "loss_integrated_error": 0.1}, index
    )
    above = pd.DataFrame({"integrated": [4]}, index[:1])
    return {"study": study, "two_delta": 5.0, "above": above, "largest": 100}


class Compared:
    """Every row is nearer than every other one by x errors."""

    def __init__(self, x):
        self.x = x
        self.tried = [("Bins(bins=5, tail=1)", 0.25), ("many", 0.25)]

    def difference(self, one, other, goal):
        return -0.3 * self.x, 0.3


def strict_more(x, **given):
    names = ["limits, α = 10", "limits, α = 1", "limits, α = 0.3", "BINS", "MEANS"]
    return {
        "found": Compared(x),
        "MECHANISMS": {name: name for name in names},
        "BINS": "BINS",
        "MEANS": "MEANS",
        "widths": [0.1, 0.25, 1.0],
    } | given


def shown(fewer, more):
    """Shares of the fall under limits of weight 0.3 and of 10, and their errors."""
    given = strict_more(0)
    rows = {
        ("limits, α = 0.3", 0.25): (fewer[0], 3 * fewer[1]),
        ("limits, α = 10", 0.25): (more[0], 3 * more[1]),
    }
    table = pd.DataFrame([*rows.values()], pd.MultiIndex.from_tuples([*rows]))
    return given | {"shown": table, "releases": 9}


def rehearsed(change, shapes, widths=(0.05, 0.1, 0.25)):
    """A table of a rehearsal: value and error of ``change`` and ``shapes`` by row, others far."""
    rows = {}
    for name in ("means", "bins"):
        for width in widths:
            c, s = (found.get((name, width), (99.0, 0.0)) for found in (change, shapes))
            rows[name, width] = (*c, *s)
    index = pd.MultiIndex.from_tuples([*rows])
    columns = ["change", "change ±", "shapes", "shapes ±"]
    table = pd.DataFrame([*rows.values()], index, columns)
    rehearsal = ends(table=table)
    return {
        "rehearsal": rehearsal,
        "means": "means",
        "bins": "bins",
        "widths": [*widths],
    }


def strict_release(x):
    return {
        "compared": Compared(x),
        "rehearsal": Compared(x),
        "widths": [0.05, 0.1, 0.25],
        "means": "means",
        "bins": "bins",
        "own": "own",
        "published": ("published", 0.0),
    }


def attacks(x):
    """Power of two attacks, from 20,000 tables each."""
    likelihood = 0.5
    error = np.sqrt(likelihood * (1 - likelihood) * 2 / 20_000)
    rows = {}
    for release in ("With weights", "Without the seed"):
        rows[release, "likelihood ratio"] = [likelihood] * 2
        rows[release, "total"] = [likelihood - x * error] * 2
    index = pd.MultiIndex.from_tuples([*rows])
    return {"power": pd.DataFrame([*rows.values()], index, [3, 20])}


def exceeded(x):
    """Shares above at two sizes; the larger one must be twice the other for sure."""
    rows = {("Weighted-M", 100): (0.0, 0.1), ("Weighted-M", 400): (0, 0)}
    table = pd.DataFrame([*rows.values()], pd.MultiIndex.from_tuples([*rows]))
    table.columns = ["low", "high"]
    large = {"low": 0.2 + 0.05 * (x - 2), "high": 0.2 + 0.05 * (x + 2)}
    return {"again_above": table, "large": large, "sizes": [100, 400]}


def series(mean, error):
    """Numbers of this mean and standard error of the mean."""
    return mean + error * np.sqrt(3.0) * np.array([1.0, -1.0, 1.0, -1.0])


# chapter, claim or function, and what it is given x errors beyond its border
NOISE = [
    ("poisson_contraction", claim, given)
    for claim, given in [
        ("unweighted-climb", lambda x: contraction(growth=(0.1 * x, 0.1))),
        ("weighted-drift-upward", lambda x: contraction(drift=(0.1 * x, 0.1))),
        ("close-in-on-m", lambda x: contraction(spread=(-0.1 * x, 0.1))),
        ("gathered-here", lambda x: contraction(spread=(-0.1 * x, 0.1)) | AROUND),
        ("argument-in-summary", lambda x: contraction(drift=(0.1 * x, 0.1)) | AROUND),
        ("shows-the-same", lambda x: contraction(growth=(0.1 * x, 0.1)) | PAPER),
        ("shows-the-same", lambda x: contraction(drift=(0.1 * x, 0.1)) | PAPER),
        ("shows-the-same", lambda x: contraction(spread=(-0.1 * x, 0.1)) | PAPER),
        (
            "weighted-climb-less",
            lambda x: contraction(growth=(2 + 0.1 * x, 0.1), drift=(1, 0)),
        ),
        (
            "weighted-climb-less",
            lambda x: contraction(growth=(2, 0), drift=(1 - 0.1 * x, 0.1)),
        ),
        (
            "weights-slow-truncation-stops",
            lambda x: contraction(growth=(1 + 0.1 * x, 0.1), drift=(1, 0)) | STOPPED,
        ),
        (
            "weights-slow-truncation-stops",
            lambda x: contraction(growth=(1, 0), drift=(1 - 0.1 * x, 0.1)) | STOPPED,
        ),
        (
            "weights-slow-truncation-stops",
            lambda x: contraction(drift=(0.1 * x, 0.1)) | STOPPED,
        ),
        (
            "mean-falls",
            lambda x: of_arrays(MEAN, (1, 0), (100 - 0.1 * x, 0.1)) | {"mean": 100},
        ),
        *[
            (
                "bias-shows-more",
                lambda x, own=own: (
                    of_arrays(
                        SHIFT,
                        (1 - 0.1 * x * (not own), 0.1 * (not own)),
                        (1 + 0.1 * x * own, 0.1 * own),
                    )
                    | {"deviations": {"Weighted-M": pd.Series([2, 1])}}
                ),
            )
            for own in (True, False)
        ],
        ("most-still-exceed", lambda x: {"interval": share_from(0.5, x)}),
        ("just-above-m-again", lambda x: {"interval": share_from(0.5, x)} | AROUND),
        ("slightly-above-2m", lambda x: {"interval": share_from(0, x)} | AROUND),
    ]
]
NOISE += [
    ("ce_application", claim, given)
    for claim, given in [
        (
            "count-has-smallest-delta",
            lambda x: four(DPweighted=(1, 0), Countweighted=(1 - 0.1 * x, 0.1)),
        ),
        (
            "count-has-smallest-delta",
            lambda x: four(DPweighted=(1 + 0.1 * x, 0.1), Countweighted=(1, 0)),
        ),
        (
            "delta-falls",
            lambda x: {"weighted": [fit(1 + 0.1 * x, 0.1), fit(9, 9), fit(1, 0)]},
        ),
        ("delta-falls", lambda x: {"weighted": [fit(1, 0), fit(1 - 0.1 * x, 0.1)]}),
        (
            "rises-once",
            lambda x: {
                "weighted": [fit(1, 0), fit(1 + 0.1 * x, 0.1)],
                "fits": dict.fromkeys([(0.6, -0.1), (0.5, 0.0)]),
            },
        ),
        *[
            (
                claim,
                lambda x, near=near, far=far: utility(
                    {near: (1, 0)}, {far: (1 + 0.1 * x, 0.1)}, Unweighted=9.0
                ),
            )
            for claim, near, far in [
                ("dp-closer-for-the-mean", "DPweighted", "Countweighted"),
                ("own-bias-upwards", "DPweighted", "Unweighted"),
                ("dp-closer-than-count", "DPweighted", "Countweighted"),
                ("dp-loses-tail", "Unweighted", "DPweighted"),
            ]
        ],
        ("dp-for-the-mean", lambda x: away(mean=[((1 - 0.1 * x, 0.1), (1, 0))])),
        ("dp-for-the-mean", lambda x: away(mean=[((1, 0), (1 + 0.1 * x, 0.1))])),
        ("fails-for-the-tail", lambda x: away(tail=[((1 + 0.1 * x, 0.1), (1, 0))] * 2)),
        (
            "holds-for-the-mean",
            lambda x: (
                away(mean=[((1 - 0.1 * x, 0.1), (1, 0))]) | {"closer": lambda *_: True}
            ),
        ),
        ("groups-can-buy-most", lambda x: by_education((1 - 0.1 * x, 0.1), (1, 0))),
        ("groups-can-buy-most", lambda x: by_education((1, 0), (1 + 0.1 * x, 0.1))),
    ]
]
NOISE += [
    # these tables have two standard errors
    *[
        ("application_settings", claim, given)
        for claim in ("prior-decides", "property-of-the-prior")
        for given in (
            lambda x: priors((1 - 0.1 * x, 0.2), (1, 0)),
            lambda x: priors((1, 0), (1 + 0.1 * x, 0.2)),
        )
    ],
    (
        "application_settings",
        "chapter-within-two",
        lambda x: {
            "of_verdicts": lambda *_: pd.DataFrame(
                {"difference": [0.1 * x - 2, 1 - 0.05 * x], "±": [0.2, 0.1]}
            )
        },
    ),
    *[
        (
            "application_settings",
            "statistic-and-model",
            lambda x, statistic=statistic: {
                # a difference to the other side is sure as well
                "verdicts": verdicts(max(x, -1.5), statistic)
            },
        )
        for statistic in (True, False)
    ],
    ("privacy_audit", "nearly-all-surely", losses),
    *[
        ("strict_more", claim, strict_more)
        for claim in [
            "means-nearer-than-posteriors",
            "bins-nearer-than-posteriors",
            "bins-nearer-in-levels",
            "limits-nearer-than-bins",
            "same-weight-is-off",
            "means-nearer-for-the-fall",
            "means-nearer-in-levels",
        ]
    ],
    (
        "strict_more",
        "bias-of-either-sign",
        lambda x: shown((100 + x, 1.0), (50, 0.1)),
    ),
    (
        "strict_more",
        "bias-of-either-sign",
        lambda x: shown((150, 0.1), (100 - x, 1.0)),
    ),
    *[
        ("strict_release", claim, strict_release)
        for claim in [
            "few-bins-at-0.05",
            "many-bins-at-0.25",
            "means-beat-published",
            "published-beat-own",
            "means-nearer-than-bins",
            "means-nearer-than-own",
            "bins-nearer-than-own",
        ]
    ],
    (
        "strict_release",
        "level-needs-0.1",
        lambda x: rehearsed({("means", 0.1): (20 - x, 1.0)}, {}),
    ),
    (
        "strict_release",
        "shapes-need-0.25",
        lambda x: rehearsed({}, {("bins", 0.25): (50 - x, 1.0)}),
    ),
    *[
        (
            "strict_release",
            "bins-for-both",
            lambda x, at=at: rehearsed(
                {("bins", 0.25): (20 - x * (at == 0), 1.0 * (at == 0))},
                {("bins", 0.25): (50 - x * (at == 1), 1.0 * (at == 1))},
            ),
        )
        for at in (0, 1)
    ],
    ("what_is_weaker", "better-attack", attacks),
    ("what_is_weaker", "secret-seed-no-end", attacks),
    ("what_is_weaker", "most-in-the-largest", exceeded),
    (
        "your_own_model",
        "falls-at-all-ages",
        lambda x: {"together": pd.Series(series(-x, 1.0))},
    ),
    (
        "your_own_model",
        "most-at-61",
        lambda x: {
            "more": pd.DataFrame({"18–30": 9.0, "61–79": series(-x, 1.0)}),
        },
    ),
]
IDS = [f"{chapter}-{claim}-{at}" for at, (chapter, claim, _) in enumerate(NOISE)]


@pytest.mark.parametrize(("chapter", "claim", "given"), NOISE, ids=IDS)
def test_a_claim_holds_beyond_two_standard_errors_and_not_nearer(chapter, claim, given):
    found = {x: evaluated(chapter, claim, given(x)) for x in (2.5, 1.5, -1.5, -2.5)}
    assert {x: bool(holds) for x, holds in found.items()} == {x: x > 2 for x in found}


@pytest.mark.parametrize("x", [0.0, 1.0, -1.0, 3.0, -3.0])
def test_two_samplers_agree_unless_they_surely_differ(x):
    for pair in (
        (fit(1 + 0.1 * x, 0.1), fit(1, 0)),
        (fit(1, 0), fit(1 - 0.1 * x, 0.1)),
    ):
        given = {"by_two": [pair]}
        assert evaluated("trusting_a_bound", "same_bounds", given) == (abs(x) < 2)


def test_every_claim_that_reads_an_error_is_tried():
    tried = {MODULES["trusting_a_bound"]["same_bounds"]}
    for chapter, claim, given in NOISE:
        evaluated(chapter, claim, given(3.0), tried)
    codes = {function.__code__ for function in tried}
    left = []
    for chapter, module in MODULES.items():
        for name, claim in module["CLAIMS"].items():
            reached, ask = set(), [claim]
            while ask:
                one = ask.pop()
                if inspect.isfunction(one) and one not in reached:
                    reached.add(one)
                    ask += map(module.get, inspect.signature(one).parameters)
            for one in reached:
                if NOISY.search(inspect.getsource(one)) and one.__code__ not in codes:
                    left.append((chapter, name, one.__name__))
    left = [one for one in left if one[1] not in EXACT]
    assert not left, left
