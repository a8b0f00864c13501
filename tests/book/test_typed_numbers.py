"""Numbers that a chapter's words have from a closed formula, and from no run, against this formula."""

import re

import nbformat
import numpy as np
import pytest
from conftest import ROOT
from scipy import stats

import ppm
from ppm_book.chapters import household

MU = np.linspace(*household.GRID)
BOUNDS = {
    name: np.abs(stats.poisson.logpmf(count, MU)).max()
    for name, count in zip(household.HOUSEHOLDS, household.COUNTS, strict=True)
}


def percent(share):
    return 100 * share


def at_most(one_in, epsilon):
    """Per cent, of a belief of one in so many."""
    return percent(ppm.pdp.belief_limits(1 / one_in, epsilon)[1])


def affinity(mu, true, weight):
    """Minus the logarithm, of a Poisson record."""
    counts = np.arange(1000)
    of_mu, of_true = (stats.poisson.logpmf(counts, mean) for mean in (mu, true))
    return -np.log(np.exp(of_true + weight * (of_mu - of_true)).sum())


def carried(candidates, reach):
    """Most parameters of a list."""
    return max(d for d in range(20) if 10 * reach**d <= candidates)


def unusual(threshold):
    """Households that a threshold map keeps."""
    return [name for name, bound in BOUNDS.items() if bound < threshold]


# words of a chapter, with a place for each number, and the numbers
TYPED = [
    ("eight_households", "by a factor of $e$, about {:.1f}", np.e),
    ("what_it_means", "spends {:.0f} in total", 20 * ppm.epsilon(10.1)),
    ("what_it_means", "An ε of 5 is a factor of {:.0f} for the odds", np.exp(5)),
    ("what_it_means", "so 1 in 100 may become {:.0f} %", at_most(100, 5)),
    (
        "what_it_means",
        "An ε of 10 is a factor of about {:,.0f},",
        round(np.exp(10), -3),
    ),
    ("what_it_means", "so even 1 in 100,000 may become {:.0f} %", at_most(1e5, 10)),
    (
        "what_it_means",
        "an ε of 0.1, and a result that has the probability 20 % without your record. "
        "With your record it may have about {:.0f} % at most",
        percent(0.2 * np.exp(0.1)),
    ),
    (
        "what_it_means",
        r"The first term is $0.05\, e^{{\epsilon}}$, which reaches one half at "
        r"$\epsilon = \log {:.0f} = {:.1f}$",
        0.5 / 0.05,
        np.log(0.5 / 0.05),
    ),
    (
        "what_it_means",
        "5 % false alarms and detects one half of the uses, every ε below {:.1f} is",
        np.log(0.5 / 0.05),
    ),
    (
        "what_it_means",
        r"detects 99 % refutes every ε below $\log({:.2f} / {:.2f}) = {:.1f}$",
        1 - 0.05,
        1 - 0.99,
        np.log((1 - 0.05) / (1 - 0.99)),
    ),
    (
        "theory",
        r"at a $\Delta$ of 25 and a target of $\epsilon = 2$ every household gets the "
        "weight $2/{:.0f} = {:.2f}$",
        2 * 25,
        2 / (2 * 25),
    ),
    (
        "theory",
        r"*grid*, {:.0f} values of $\mu$ from {:.0f} to {:.0f}",
        MU.size,
        *MU[[0, -1]],
    ),
    # the next tenth
    ("theory", "that of D stays below {:.1f},", np.ceil(10 * BOUNDS["D"]) / 10),
    ("theory", "while that of H reaches {:.1f}", BOUNDS["H"]),
    ("theory", "a threshold of 5 would keep {}, {} and {} and drop", *unusual(5)),
    ("theory", "leaves H a weight of {:.2f}", 1 / (BOUNDS["H"] + 1)),
    ("theory", "at a bound of 0.05 one draw of $\\theta$ costs {:g}", 2 * 0.05),
    ("theory", "A second one costs {:g} again", 2 * 0.05),
    (
        "poisson_contraction",
        "between the means 121 and 100 it is {:.1f}",
        affinity(121, 100, 0.5),
    ),
    (
        "poisson_contraction",
        "the bound 5 and the weight 0.8 has the product {:.0f}",
        5 * 0.8,
    ),
    (
        "poisson_contraction",
        "none of the 400 does, so that a share of up to {:.0f} % remains possible",
        percent(stats.binomtest(0, 400).proportion_ci().high),
    ),
    (
        "ce_application",
        "where the paper's falls by {:.0f} %",
        percent(1 - 2.25 / 10.10),
    ),
    ("what_is_weaker", "one in every {:.0f}", 100 + 50 + 1),
    ("what_is_weaker", "when a lone 40 leaves {:.0f} counts", 100 + 50 + 1),
    ("strict_release", "$W = 1/{:.0f}$ for each of three tables", 3 / 1),
    ("strict_release", "by bins at 0.25, would cost {:g}", 0.1 + 0.25),
    ("strict_release", "At 4, {} times as much", {40: "forty"}[round(4 / 0.1)]),
    # in tens
    (
        "strict_release",
        "a draw becomes narrower by {:.0f} % only",
        round(percent(1 - 2**-0.5), -1),
    ),
    (
        "strict_release",
        r"At $\epsilon = 0.1$ one release can take this to {:.1f} in 100",
        at_most(100, 0.1),
    ),
    ("strict_release", "at 1 it is {:.1f} in 100", at_most(100, 1)),
    ("your_own_model", r"by $\log 100{{,}}000$, about {:.1f} nats", np.log(1e5)),
    (
        "your_own_model",
        "at $-0.5$ and $0.5$. The width of {:.0f} is",
        0.5 - -0.5,
    ),
    (
        "your_own_model",
        "With $r = 5$, 10,000 candidates carry {} parameters",
        {4: "four"}[carried(10_000, 5)],
    ),
    (
        "your_own_model",
        "and eight would need about {} million",
        {4: "four"}[round(10 * 5**8 / 1e6)],
    ),
    (
        "your_own_model",
        "$r = 3$ eight parameters need about {:,.0f} candidates",
        round(10 * 3**8, -3),
    ),
    (
        "your_own_model",
        "10,000 candidates, five times as wide as the standard errors, carry {}",
        {4: "four"}[carried(10_000, 5)],
    ),
    (
        "using_releases",
        "Woodruff's interval, which is {:.2f} standard errors",
        2 * stats.norm.ppf(0.975),
    ),
    ("using_releases", "${:.2f}$ stated standard errors", stats.norm.ppf(0.975)),
]


def words_of(name):
    """What a reader reads in a chapter's text, on one line."""
    cells = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"<!--.*?-->|[“”\"]", "", text, flags=re.S)
    return " ".join(text.split())


@pytest.mark.parametrize("name", sorted({name for name, *_ in TYPED}))
def test_a_typed_number_is_what_its_formula_gives(name):
    text = words_of(name)
    for _, words, *numbers in (row for row in TYPED if row[0] == name):
        said = words.format(*numbers)
        # where the words have changed, change them here too
        assert text.count(said) == 1, f"{name} does not say: {said}"
