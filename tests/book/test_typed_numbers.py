"""Numbers that a chapter's words have from a closed formula, and from no run, against this formula."""

import ast
import re

import checks
import nbformat
import numpy as np
import pytest
from conftest import ROOT
from scipy import stats

import ppm
from ppm_book.chapters import contraction, household, strict

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


EXERCISES = "exercises/{}".format
GIVEN = {
    name: checks.Chapter(name).given
    for name in ("ce_application", "theory", "poisson_contraction")
}
SIX = np.array(GIVEN["poisson_contraction"].six_bounds)
ON_PAPER = (SIX.max() - SIX) / (SIX.max() - SIX.min())


def in_words(values, digits=None):
    """A list as a text has it."""
    *first, last = [f"{one:.{digits}g}" if digits else f"{one:g}" for one in values]
    return f"{', '.join(first)} and {last}".replace("-", "−")


def promised(databases):
    """One in how many: the belief of 1 in 100 after some of ε = 0.5."""
    return round(100 / at_most(100, 0.5 * databases))


def odds(share):
    return share / (1 - share)


def alone(mu):
    """The least bound of a count with this mean."""
    return np.log(2 * np.pi * mu) / 2


def in_cells(name, pattern):
    """Number that a chapter's code has at one place."""
    cells = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    ((number),) = {*re.findall(pattern, code)}
    return float(number.replace("_", ""))


SUMS = GIVEN["theory"].log_lik @ GIVEN["theory"].weights
APART = (131 - 128.5) / 4


def broken(counts, M):
    """The loss when H leaves, and 2Δ."""
    found = household.state(counts, 7, again=True, truncate_at=M)
    return found.loss, 2 * found.delta


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
    # settings of a cell that the text tells
    (
        "your_own_model",
        "Imagine that we asked {:.0f} adults",
        in_cells("your_own_model", r"asked\((\d+), -1\.4"),
    ),
    (
        "your_own_model",
        "confidential survey has asked {:,.0f} adults",
        in_cells("your_own_model", r"asked\((\d+), -0\.6"),
    ),
    (
        "your_own_model",
        "one fit of {:.0f} expenditures",
        in_cells("your_own_model", r"normal\(9\.0, 2\.0, (\d+)\)"),
    ),
    (
        "your_own_model",
        "and {:.0f} published rows",
        in_cells("your_own_model", r"table\.head\((\d+)\)"),
    ),
    (
        "your_own_model",
        "each with a weight of {:g}",
        in_cells("your_own_model", r"full\(len\(table\), ([\d.]+)\)"),
    ),
    (
        "your_own_model",
        "**A weight** of {:g},",
        in_cells("your_own_model", r"center=\w+, weight=([\d.]+)\)"),
    ),
    (
        "your_own_model",
        "draws {:,.0f} candidates for a regression of {:.0f} records",
        in_cells("your_own_model", r"size=(\d+_\d+)\)"),
        in_cells("your_own_model", r"people=(\d+)"),
    ),
    (
        "privacy_audit",
        "{:.0f} counts of 3, 50 of 12 and a lone 40",
        in_cells("privacy_audit", r"repeat\(\[3, 12, 40\], \[(\d+), 50, 1\]\)"),
    ),
    (
        "strict_more",
        "{:.0f} ordinary counts and one of 18, the limits $\\pm {:.0f}$",
        7 * in_cells("strict_more", r"\[3, 4, 4, 5, 5, 6, 7\], (\d+)\)"),
        in_cells("strict_more", r"log_likelihood, -1, (\d)\)"),
    ),
    ("strict_more", "the two lines meet at {:.0f} records", 3 / 0.5 / 0.1),
    (
        "strict_more",
        "which was 0.2: a yes is a {:.0f} and a no is $-{:.1f}$",
        (1 - 0.2) / np.sqrt(0.2 * 0.8),
        0.2 / np.sqrt(0.2 * 0.8),
    ),
    (
        "strict_more",
        "This year {:.0f} % say yes, so the mean is {:.2f}.",
        percent(in_cells("strict_more", r"np\.array\(\[([\d.]+), 0\.7\]\)")),
        0.3 * 2 - 0.7 * 0.5,
    ),
    (
        "strict_release",
        "with at least {:.0f} published units is a group",
        in_cells("strict_release", r"counted >= (\d+)"),
    ),
    (
        "trusting_a_bound",
        "To keep it short we take {:.0f} units",
        in_cells("trusting_a_bound", r"min\((\d+), len"),
    ),
    (
        "application_settings",
        "a warm-up of {:,.0f} and then {:,.0f} draws",
        in_cells("application_settings", r"warmup: int = (\d+)"),
        in_cells("application_settings", r"draws: int = (\d+)"),
    ),
    (
        "using_releases",
        "{} as large, that was published before",
        {4: "a quarter"}[in_cells("using_releases", r"earlier, np\.ones\(n // (\d)\)")],
    ),
    # exercises
    (
        EXERCISES("theory"),
        "The weighted sums are {}. Their exponentials, divided by their sum, are {}.",
        in_words(SUMS, 4),
        in_words(np.exp(SUMS) / np.exp(SUMS).sum(), 4),
    ),
    (EXERCISES("theory"), r"20 \cdot 2\Delta = {:.0f} \Delta$.", 20 * 2),
    (EXERCISES("theory"), r"$\Delta = 1/{:.0f}$.", 1 / (1 / (20 * 2))),
    (EXERCISES("theory"), r"is −{:.0f} at $\mu = 12$", -stats.poisson.logpmf(0, 12)),
    (
        EXERCISES("poisson_contraction"),
        r"about $\log {:.0f} \approx {:.1f}$",
        6400 / 100,
        np.log(6400 / 100),
    ),
    (
        EXERCISES("poisson_contraction"),
        "The weights are {}, and the products {}.",
        in_words(ON_PAPER),
        in_words(ON_PAPER * SIX),
    ),
    (
        EXERCISES("poisson_contraction"),
        "A threshold of {} takes out the {} and the {} record,",
        GIVEN["poisson_contraction"].low_M,
        *np.array(["first", "second", "third", "fourth"])[:4][
            (ON_PAPER * SIX)[:4] > GIVEN["poisson_contraction"].low_M
        ],
    ),
    (
        EXERCISES("poisson_contraction"),
        "A threshold of 3.9 also takes out the {} record, the most ordinary of all, and the "
        "{}.",
        *np.array(["first", "second", "third", "fourth"])[
            ((ON_PAPER * SIX)[:4] > 3.9)
            & ((ON_PAPER * SIX)[:4] <= GIVEN["poisson_contraction"].low_M)
        ],
    ),
    (
        EXERCISES("poisson_contraction"),
        "with weights of {} and {:.0f}.",
        *ON_PAPER[ON_PAPER * SIX <= 3.9],
    ),
    (
        EXERCISES("poisson_contraction"),
        r"which is {:.3f} nats at a mean of 25. Four times the mean adds $\frac12 \log 4 = "
        "{:.4f}$. At a mean of 1,000 the most ordinary bound is {:.1f} nats.",
        alone(25),
        alone(100) - alone(25),
        alone(1000),
    ),
    (EXERCISES("poisson_contraction"), r"which is {:.1f} at $\mu = 100$", alone(100)),
    # in tens, of 6,400 records
    (
        EXERCISES("poisson_contraction"),
        "which are about {:.0f} at the edge",
        round(6400 * stats.poisson(100).pmf(90), -1),
    ),
    (
        EXERCISES("ce_application"),
        "Every household counts as about {} of one.",
        {8: "an eighth"}[round(78.7 / 10.10)],
    ),
    (
        EXERCISES("ce_application"),
        "detects the household {:.0f} times in 100.",
        percent(stats.norm(APART).sf(stats.norm.ppf(0.95))),
    ),
    (
        EXERCISES("ce_application"),
        "{:.0f} of them detect it in {} of five.",
        np.ceil(((stats.norm.ppf(0.95) + stats.norm.ppf(0.8)) / APART) ** 2),
        {4: "four cases"}[round(5 * 0.8)],
    ),
    (
        EXERCISES("ce_application"),
        "{} is within the radius of {}, but",
        24.5 if abs(24.5 - 30) <= 0.2 * 30 else None,
        30 if abs(24.5 - 30) > 0.2 * 24.5 else None,
    ),
    (
        EXERCISES("what_it_means"),
        r"if it is $\log 3 \approx {:.1f}$, and if it is 5",
        np.log(3),
    ),
    # where 3a = 1 - (1 - a) / 3
    (
        EXERCISES("what_it_means"),
        "which is at $a = 1/{:.0f}$ and a detection of {:.0f}/4",
        1 / ((1 - 1 / 3) / (3 - 1 / 3)),
        4 * 3 * (1 - 1 / 3) / (3 - 1 / 3),
    ),
    (
        EXERCISES("what_it_means"),
        "it lies at {:.1f} % false alarms and {:.1f} % detection",
        percent(1 / (1 + np.exp(5))),
        percent(ppm.pdp.detection_limit(1 / (1 + np.exp(5)), 5)),
    ),
    (
        EXERCISES("what_it_means"),
        r"\ge 0.6 / 0.1 = {:.0f}$, the second for $e^\epsilon \ge {:.1f} / {:.1f} = "
        "{:.2f}$",
        0.6 / 0.1,
        1 - 0.1,
        1 - 0.6,
        (1 - 0.1) / (1 - 0.6),
    ),
    (
        EXERCISES("what_it_means"),
        r"every $\epsilon$ below $\log {:.0f} \approx {:.1f}$",
        0.6 / 0.1,
        np.log(0.6 / 0.1),
    ),
    (
        EXERCISES("what_it_means"),
        r"from 1/{:.0f} to 1/{:.0f}, by a factor of {:.1f}, so $\epsilon$ must not exceed "
        "{:.2f}",
        1 / odds(1 / 100),
        1 / odds(1 / 20),
        odds(1 / 20) / odds(1 / 100),
        # cut off, and not rounded up
        np.floor(100 * np.log(odds(1 / 20) / odds(1 / 100))) / 100,
    ),
    (EXERCISES("what_it_means"), "A database costs {:g}.", ppm.epsilon(0.25)),
    (EXERCISES("what_it_means"), "Three fit, and leave at most 1 in {}.", promised(3)),
    (
        EXERCISES("what_it_means"),
        "Five cost {:g}, and would allow 1 in {}.",
        5 * 0.5,
        promised(5),
    ),
    (EXERCISES("what_it_means"), r"20 \cdot 2 \cdot 0.02 = {:g}$", 20 * 2 * 0.02),
    (
        EXERCISES("what_it_means"),
        "Six databases from one table cost {:g} nats, whenever they appear, and would allow 1 "
        "in {}.",
        6 * 0.5,
        promised(6),
    ),
    (
        EXERCISES("what_it_means"),
        r"It says $\epsilon = {:g}$ for the three databases",
        3 * 0.5,
    ),
    (
        EXERCISES("what_it_means"),
        "each must cost at most {:.2f},",
        np.floor(100 * np.log(odds(1 / 20) / odds(1 / 100)) / 5) / 100,
    ),
    (
        EXERCISES("strict_more"),
        r"\approx {:.1f}$, in thousands $\log(50 \sqrt{{2\pi}}) \approx {:.1f}$",
        -stats.norm(0, 5e4).logpdf(0),
        -stats.norm(0, 50).logpdf(0),
    ),
    (
        EXERCISES("strict_release"),
        "costs another 0.1, and both together have {:g};",
        2 * 0.1,
    ),
    # the largest limit of N runs
    (
        EXERCISES("privacy_audit"),
        "fails with a probability of at most {:.1f} %, so both hold with at least {:.0f} %.",
        percent(0.05 / 2),
        percent(1 - 0.05),
    ),
    (EXERCISES("privacy_audit"), "looking at these {:.0f} means", 400 + 400),
    (
        EXERCISES("what_is_weaker"),
        r"the loss is {:.2f} nats, while $2\Delta$ is {:.2f}.",
        *broken([3, 4, 4, 5, 5, 12, 7, 18], 5),
    ),
    (
        EXERCISES("what_is_weaker"),
        r"the leaving of H costs {:.2f} nats, and $2\Delta$ is {:.2f}.",
        *broken([3, 4, 4, 5, 10, 6, 7, 18], 4.5),
    ),
    (
        EXERCISES("what_is_weaker"),
        r"H leaves with {:.2f} nats, and $2\Delta$ is {:.2f}.",
        *broken([3, 4, 4, 5, 3, 3, 7, 18], 25),
    ),
    (
        EXERCISES("what_is_weaker"),
        "and the loss is {:.1f} nats.",
        broken(household.COUNTS, 4)[0],
    ),
    (EXERCISES("your_own_model"), "the maximum of these {:.0f} numbers", 4 * 100),
    (
        EXERCISES("using_releases"),
        "takes them for {:,.0f} workers gets",
        5 * 400,
    ),
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


def test_estimates_of_weighted_m_form_the_two_lumps_of_the_exercise():
    text = words_of(EXERCISES("poisson_contraction"))
    (lower,) = re.findall(r"At 199 the median estimate is (\d\.\d+) lower", text)
    lumps = {199: [], 200: []}
    for number in range(60):
        rng = np.random.default_rng([2022, 6400, number])
        counts, times = np.unique(rng.poisson(100, 6400), return_counts=True)
        bounds, _ = contraction.fit(counts, times, 1000, rng)
        weights = ppm.record_weights(bounds, truncate_at=3.5)
        # from 100 outwards, to those next to a removed one
        gone = np.r_[0, counts[weights == 0], 1000]
        ends = gone[gone < 100].max() + 1, gone[gone > 100].min() - 1
        estimate = np.average(counts, weights=weights * times)
        lumps.setdefault(sum(ends), []).append(estimate)
    (low, high), others = (lumps.pop(199), lumps.pop(200)), [*lumps.values()]
    assert len(low) + len(high) > 54 > sum(map(len, others))
    apart = np.median(high) - np.median(low)
    assert apart == pytest.approx(float(lower), abs=0.05)


def test_households_their_list_and_limits_are_the_same_in_every_chapter():
    typed = {"households": [], "grid": [], "limits": []}
    for file in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = nbformat.read(file, 4).cells
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        for names, pattern, key in (
            ("counts|households", r"(?:np\.array\()?(\[[\d, ]+\])\)?", "households"),
            ("mu|means|possible", r"np\.linspace\((2[\d.]*, [^)]*)\)", "grid"),
        ):
            typed[key] += re.findall(rf"^(?:{names}) = {pattern}", code, flags=re.M)
        typed["limits"] += re.findall(r"limits=(\(-[\d_, ]+\))", code)
    of_houses = [ast.literal_eval(one) for one in typed["households"]]
    assert len(of_houses) >= 6 and of_houses == [[*household.COUNTS]] * len(of_houses)
    assert len(typed["grid"]) >= 4
    for one in typed["grid"]:
        assert ast.literal_eval(one) == tuple(household.GRID), one
    assert [ast.literal_eval(one) for one in typed["limits"]] == [strict.LIMITS]
