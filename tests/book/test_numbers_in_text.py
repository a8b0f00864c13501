"""Numbers in sentences, computed again from the tables that the same run saved."""

import json

import nbformat
import numpy as np
import pandas as pd
import pytest

from ppm_book.tools.plain import numbers_of


class Run:
    """Tables and parameters of a run."""

    def __init__(self, folder):
        self.folder = folder
        record = json.loads((folder / "run.json").read_text("utf-8"))
        self.given = record["parameters"]

    def table(self, name, **read):
        return pd.read_csv(self.folder / f"{name}.csv", **read)

    def fits(self, who):
        """Rows of the chapter's number of components, one for each setting."""
        table = self.table("local_bounds")
        here = (table["K"] == self.given["components"]) & (table["mechanism"] == who)
        return table[here].drop_duplicates(["scale", "shift"])

    def at(self, name, *row):
        """Rows of a table by its first columns."""
        return self.table(name, index_col=[*range(len(row))]).loc[row]


def application(run):
    dp, em, count = map(run.fits, ("DPweighted", "EMweighted", "Countweighted"))
    bounds, m = dp["local bound"].to_numpy(), run.given["releases"]
    kept = [one["average weight"].to_numpy() for one in (dp, em)]
    more = kept[0] / kept[1]
    risk = run.table("match_risk", index_col=0)["expected match risk"]
    found = risk.drop("Data")
    yield "least ε", f"{2 * m * bounds.min():.0f}"
    yield "most ε", f"{2 * m * bounds.max():.0f}"
    yield "fall", f"{100 * (bounds[0] - bounds[-1]) / bounds[0]:.0f}"
    yield "DP weight", f"{kept[0][0]:.2f}"
    yield "EM weight", f"{kept[1][0]:.2f}"
    yield "count weight", f"{count['average weight'].iloc[0]:.2f}"
    yield "times the weight", f"{more.min():.1f} to {more.max():.1f}"
    yield "K", f"{run.given['components']}"
    yield "releases", f"{m}"
    yield "radius", f"{100 * run.given['radius']:g}"
    yield "fewest found", f"{found.min():.0f}"
    yield "most found", f"{found.max():.0f}"
    yield "in the data", f"{risk['Data']:.0f}"
    along = run.table("errors_along", header=[0, 1], index_col=[0, 1])
    for who in ("DPweighted", "EMweighted"):
        own = along.loc["mean"]["error (%)", who]
        yield f"means, {who}", f"{own.min():.1f} to {own.max():.1f}"
    typical = run.table("release_errors", header=[0, 1], index_col=0)
    for who in ("First quarter alone", "Unweighted", "DPweighted", "EMweighted"):
        error = typical["error (%)", "means by education"][who]
        yield f"{who}, means by education", f"{error:.1f}"


def settings(run):
    priors = run.table("priors", index_col=0)
    yield "usual prior", f"{priors['Δ'][1.0]:.1f}"
    yield "wide prior", f"{priors['Δ'][10.0]:.1f}"
    yield "others", f"{priors['largest bound of the others'][10.0]:.1f}"
    yield "income of one", f"{priors['from an income of'][10.0]:,.0f}"
    models = run.table("models_tried", index_col=[0, 1])
    yield "smallest Δ", f"{models['Unweighted'].min():.0f}"
    yield "largest Δ", f"{models['Unweighted'].max():.0f}"
    for name, row in {"log one": ("log", 1), "log two": ("log", 2)}.items():
        known = row in models.index
        yield name, f"{models['mean (%)'][row]:.0f}" if known else None


def contraction(run):
    bounds = run.table("local_bounds", index_col=["mechanism", "size"])
    factors = run.table("safety_factors", index_col=["mechanism", "size"])["1.05"]
    for words, who in {"unweighted": "Unweighted", "weighted": "Weighted"}.items():
        yield f"small {words}", f"{bounds.loc[who]['median'].iloc[0]:.2f}"
        yield f"large {words}", f"{bounds.loc[who]['median'].iloc[-1]:.2f}"
    last = bounds.loc["Weighted-M"].iloc[-1]
    size, mean = max(run.given["sizes"]), run.given["mean"]
    yield "true mean", f"{mean:g}"
    yield "floor", f"{np.log(np.sqrt(2 * np.pi * mean)):.2f}"
    yield "estimate", f"{last['average of the mean']:.1f}"
    yield "bias in per cent", f"{100 - 100 * last['average of the mean'] / mean:.1f} %"
    yield "removed", f"{100 * last['records removed'] / size:.1f} %"
    yield "above with five", f"{100 * factors['Weighted-M'].iloc[0]:.1f}"
    yield "least above, Weighted", f"{100 * factors['Weighted'].min():.1f}"
    yield "most above, Weighted", f"{100 * factors['Weighted'].max():.1f}"


def households(run):
    rows = run.table("eight_households_mechanisms", index_col=0)
    yield "Δ", f"{rows['Δ']['Weighted']:.2f}"
    yield "ε", f"{2 * rows['Δ']['Weighted']:.2f}"
    yield "one weight", f"{rows['largest weight']['EMweighted']:.2f}"
    # of H, before any weights
    yield "bound of H", f"{rows['Δ']['Unweighted']:.2f}"
    for who in ("Weighted", "EMweighted"):
        yield f"{who} keeps", f"{rows['sum of weights'][who]:.1f}"


def audit(run):
    rows = run.table("mechanisms_audited", index_col=0)
    above = run.table("databases_over_own_bound", index_col=[0, 1, 2])["estimate"]
    for name in ("Weighted-M", "Capped"):
        yield f"error of {name}", f"{rows['error'][name]:.1f}"
    largest = "Weighted-M", max(run.given["sizes"])
    yield "one seed", f"{100 * above[*largest, 'common']:.0f}"
    yield "integrated", f"{100 * above[*largest, 'integrated']:.0f}"


def weaker(run):
    power = run.table("attacks_on_tables", index_col=[0, 1])["20"]
    for release in ("With weights", "Without the seed"):
        for attack in ("total", "likelihood ratio"):
            found = power[release, attack]
            yield f"{release} {attack} 20", f"{100 * found:.0f}"


def trusting(run):
    starts = run.table("other_starts", index_col=[0, 1])
    before, after = (
        starts["R-hat, log-likelihood"]["Unweighted", start]
        for start in ("as above", "both sides")
    )
    yield "R-hat before", f"{before:.2f}"
    yield "R-hat after", f"{after:.2f}"
    agree = starts["chains agree"].unstack()
    changed = agree["as above"] ^ agree["both sides"]
    yield "changed", f"{changed.sum()} of {changed.size}"
    found = run.table("two_samplers").set_index("sampler")["divergences"]["PyMC"]
    yield "divergences of PyMC", f"{found.sum():.0f}"


def own_model(run):
    shares = run.table("answers_by_age", index_col=0)
    yield "yes in data", f"{shares['confidential']['61–79']:.2f}"
    yield "yes in releases", f"{shares['synthetic']['61–79']:.2f}"
    carried = run.table("parameters_of_a_list").set_index("parameters")
    yield "eight", f"{carried['left, r = 5'][8]:.1f}"
    yield "nearest", f"{carried['nearest, r = 5'][8]:.1f}"


CHAPTERS = {
    "ce_application": application,
    "application_settings": settings,
    "poisson_contraction": contraction,
    "eight_households": households,
    "privacy_audit": audit,
    "what_is_weaker": weaker,
    "trusting_a_bound": trusting,
    "your_own_model": own_model,
}


@pytest.mark.parametrize("name", CHAPTERS)
def test_numbers_of_the_text_are_those_of_the_saved_tables(notebooks, name):
    folder = notebooks.executed(name)
    shown = numbers_of(nbformat.read(folder / f"{name}.ipynb", 4))
    again = dict(CHAPTERS[name](Run(folder)))
    assert {key: shown.get(key) for key in again} == again
