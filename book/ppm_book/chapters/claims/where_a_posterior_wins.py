"""Claims and numbers of the chapter on where a posterior wins."""

import numpy as np

from ppm_book.chapters import page


def nearer(one, other):
    """Whether squared errors are surely smaller, table by table, than others."""
    apart = np.asarray(other) - np.asarray(one)
    return bool(
        page.surely_less((0.0, 0.0), (apart.mean(), apart.std() / apart.size**0.5))
    )


def posteriors(LIMITS, OWN, MENDED):
    return [LIMITS, OWN, *MENDED.values()]


def draws_in_groups(H_LIMITS, H_OWN, H_MENDED):
    return [H_LIMITS, H_OWN, H_MENDED]


def sum_nearer(found, posteriors, SUM, sizes):
    """Function: whether a rival is surely nearer to the change than all posteriors."""
    return lambda n, width, rival=SUM: all(
        nearer(found[n, width, rival][0], found[n, width, one][0]) for one in posteriors
    )


def beside(group_found, group_ends, part):
    """Function: whether a row of the groups is surely nearer than a share of another's error."""

    def squared(width, name):
        rows = (
            group_ends if name in group_ends else {name: group_found.get((width, name))}
        )
        return rows[name][:, part]

    return lambda width, one, other, share=1.0: nearer(
        squared(width, one), share**2 * squared(width, other)
    )


def in_means(group_found, group_ends):
    return beside(group_found, group_ends, 0)


def of_one(group_found, group_ends):
    return beside(group_found, group_ends, 1)


def of_all(group_found, group_ends):
    return beside(group_found, group_ends, 2)


def tenth(widths):
    """The ε that the text names where it has one number of a small one."""
    return 0.1 if 0.1 in widths else widths[0]


def quarter(widths):
    return 0.25 if 0.25 in widths else widths[-1]


def few(errors, sizes, tenth):
    """Errors of the change with the fewest counts, by way."""
    return errors.loc[(f"{sizes[0]:,}", f"{tenth:g}")]


def many(errors, sizes, tenth):
    return errors.loc[(f"{sizes[-1]:,}", f"{tenth:g}")]


def small(widths):
    """The smallest ε of the groups, at which their sums are mostly noise."""
    return [width for width in widths if width <= 0.1]


def rivals(GROUP_SETTINGS, group_ends, SHRUNK):
    """All rows of the groups but the shrunken sums and the unprotected draw."""
    ends = [name for name in group_ends if name.startswith("published")]
    return [one for one in [*GROUP_SETTINGS, *ends] if one != SHRUNK]


def shown(regression):
    """Average error of the three changes."""
    return regression.iloc[:, 2:].mean(axis=1)


def helped(shown, HELPED, SQUARES):
    """Errors of changes with the posterior over those with least squares, by ε."""
    return shown.loc[HELPED] / shown.loc[SQUARES]


def as_it_was(shown, CHAIN, SQUARES):
    return shown.loc[CHAIN] / shown.loc[SQUARES]


def wide(regression, CHAIN, ALIKE, chain_widths):
    """Errors of changes with the posterior over those with least squares, wide priors."""
    at = chain_widths[0]
    return (regression.loc[(CHAIN, at)] / regression.loc[(ALIKE, at)]).iloc[2:]


def given_the_sums(
    group_sums,
    residuals,
    group_settings,
    SHRUNK,
    means_off,
    BETWEEN,
    OWN_RECORDS,
    quarter,
):
    """Error of groups' means if each is drawn from its posterior given the noisy sums."""
    clip = group_settings[quarter, SHRUNK]
    rng = np.random.default_rng(0)
    variance = group_sums(residuals, quarter, clip, rng, number=1)[1]
    own = BETWEEN**2 + 2 / OWN_RECORDS
    return np.sqrt(
        means_off.loc[f"{quarter:g}", SHRUNK] ** 2 + own * variance / (own + variance)
    )


CLAIMS = {
    "sum-surely-nearer": lambda sum_nearer, sizes, widths: all(
        sum_nearer(n, width) for n in sizes for width in widths if width <= 1
    ),
    "sum-or-counts-nearer": lambda sum_nearer, sizes, widths, COUNTS: all(
        sum_nearer(n, widths[-1]) or sum_nearer(n, widths[-1], COUNTS) for n in sizes
    ),
    "unprotected-draw-is-wider": lambda found, sizes, SUM, quarter: all(
        nearer(found[n, quarter, SUM][0], found[n, "unprotected", ""][0])
        for n in sizes[1:]
    ),
    "correction-can-hurt": lambda found, sizes, widths, MENDED: all(
        nearer(found[sizes[0], "published", ""][0], found[sizes[0], widths[0], one][0])
        for one in MENDED.values()
    ),
    "sum-nearer-for-zeros": lambda off, LIMITS, MENDED, SUM: np.all(
        off.loc["Poisson"][[LIMITS, MENDED[LIMITS]]].min(axis=1)
        > off.loc["Poisson"][SUM]
    ),
    "counts-see-zeros": lambda off, SUM, COUNTS: np.all(
        (off.loc["Poisson"][COUNTS] < off.loc["Poisson"][SUM])
        == (off.loc["Poisson"].index >= 0.25)
    ),
    "model-misses-zeros": lambda off, COUNTS: (
        off.loc["a tenth became 0"].drop(columns=COUNTS).sub(8.5).abs().max(axis=None)
        < 0.5
    ),
    "counts-need-no-model": lambda off, COUNTS: (
        off.loc["a tenth became 0"][COUNTS].max() < 1.5
    ),
    "draw-beats-plain-sums": lambda in_means, small, H_LIMITS, EACH: (
        len(small) == 2 and all(in_means(width, H_LIMITS, EACH) for width in small)
    ),
    "draw-like-published": lambda in_means, small, draws_in_groups: (
        not any(
            in_means(width, one, "published group")
            for width in small
            for one in draws_in_groups
        )
    ),
    "shrunk-sums-nearer": lambda in_means, widths, draws_in_groups, SHRUNK: all(
        in_means(width, SHRUNK, one) for width in widths for one in draws_in_groups
    ),
    "shrunk-sums-not-beaten": lambda in_means, widths, rivals, SHRUNK: (
        not any(
            in_means(width, one, SHRUNK, 0.95)
            for width in widths
            if width >= 0.1
            for one in rivals
        )
    ),
    "pooled-at-the-smallest": lambda in_means, rivals, SHRUNK, POOLED, widths: (
        all(in_means(0.05, POOLED, one) for one in [*rivals, SHRUNK] if one != POOLED)
        if 0.05 in widths
        else None
    ),
    "correction-hurts-groups": lambda means_off, H_LIMITS, H_MENDED, widths: all(
        means_off.loc[f"{width:g}", H_MENDED]
        > 1.4 * means_off.loc[f"{width:g}", H_LIMITS]
        for width in widths
        if width <= 0.25
    ),
    "pooled-for-all": lambda of_all, widths, rivals, SHRUNK, POOLED: all(
        of_all(width, POOLED, one)
        for width in widths
        if width <= 0.25
        for one in [*rivals, SHRUNK]
        if one != POOLED
    ),
    "pooled-blind": lambda one_moved, widths, POOLED: all(
        abs(one_moved.loc[f"{width:g}", POOLED] - 98) < 3 for width in widths
    ),
    "shrunk-for-one": lambda of_one, widths, draws_in_groups, SHRUNK: all(
        of_one(width, SHRUNK, one) for width in widths for one in draws_in_groups
    ),
    "one-group-hidden": lambda one_moved, small: all(
        one_moved.loc[f"{width:g}"].min() > 200 / 3 for width in small
    ),
    "draw-beats-wide-squares": lambda wide: wide.iloc[-1] < 2 / 3,
    "larger-levels-alike": lambda wide: (wide.iloc[:-1] - 1).abs().max() < 0.25,
    "regression-level": lambda helped, as_it_was: (
        max(abs(helped.iloc[0] - 1), abs(as_it_was.iloc[0] - 1)) < 0.15
    ),
    "level-at-one": lambda helped, as_it_was: (
        max(abs(helped.iloc[-1] - 1), abs(as_it_was.iloc[-1] - 1)) < 0.2
    ),
    "wide-prior-levels": lambda regression, CHAIN, SQUARES: np.all(
        regression.loc[CHAIN, "average level"]
        > 1.8 * regression.loc[SQUARES, "average level"]
    ),
    "helped-levels": lambda regression, HELPED, SQUARES: np.all(
        regression.loc[HELPED, "average level"]
        < 4 / 3 * regression.loc[SQUARES, "average level"]
    ),
    "taken-off-mixed": lambda regression, CHAIN, TAKEN_OFF: np.all(
        (regression.loc[TAKEN_OFF] < regression.loc[CHAIN]).iloc[:, :2] == [True, False]
    ),
    "taken-off-shows-less": lambda regression, CHAIN, TAKEN_OFF: np.all(
        regression.loc[TAKEN_OFF].iloc[:, 2:] > regression.loc[CHAIN].iloc[:, 2:]
    ),
    "smallest-below": lambda equal, CHANGED: (
        min(own.sum() for own in CHANGED.values()) < equal.iloc[0, -1] / 2
    ),
    "lines-above-one": lambda as_drawn, after: all(
        line.min() > 1
        for lines in (as_drawn, after)
        for name, line in lines.items()
        if "predictors" not in name
    ),
    "none-wins": lambda as_drawn, after: all(
        line.min() > 0.95 for lines in (as_drawn, after) for line in lines.values()
    ),
    "regression-at-one": lambda as_drawn, after: (
        abs(as_drawn["ten predictors"] - 1).max() < 0.2
        and abs(after["ten predictors, published prior"] - 1).max() < 0.2
    ),
}


NUMBERS = {
    "tenth": lambda tenth: f"{tenth:g}",
    "quarter": lambda quarter: f"{quarter:g}",
    "few records": lambda sizes: f"{sizes[0]:,}",
    "many": lambda sizes: f"{sizes[-1]:,}",
    "sum, few": lambda few, SUM: f"{few[SUM]:.0f}",
    "limits, few": lambda few, LIMITS: f"{few[LIMITS]:.0f}",
    "sum, many": lambda many, SUM: f"{many[SUM]:.0f}",
    "limits, many": lambda many, LIMITS: f"{many[LIMITS]:.0f}",
    "corrected, many": lambda many, LIMITS, MENDED: f"{many[MENDED[LIMITS]]:.0f}",
    "plain, groups": lambda means_off, EACH, tenth: (
        f"{means_off.loc[f'{tenth:g}', EACH]:.2f}"
    ),
    "shrunk, groups": lambda means_off, SHRUNK, tenth: (
        f"{means_off.loc[f'{tenth:g}', SHRUNK]:.2f}"
    ),
    "limits, groups": lambda means_off, H_LIMITS, tenth: (
        f"{means_off.loc[f'{tenth:g}', H_LIMITS]:.2f}"
    ),
    "peak": lambda means_off, SHRUNK, quarter: (
        f"{means_off.loc[f'{quarter:g}', SHRUNK]:.2f}"
    ),
    "given the sums": lambda given_the_sums: f"{given_the_sums:.2f}",
    "first width": lambda chain_widths: f"{chain_widths[0]:g}",
    "last width": lambda chain_widths: f"{chain_widths[-1]:g}",
    "chain, small": lambda regression, CHAIN: (
        f"{regression.loc[CHAIN].iloc[0, -1]:.0f}"
    ),
    "wide, small": lambda regression, ALIKE: f"{regression.loc[ALIKE].iloc[0, -1]:.0f}",
    "squares changes": lambda shown, SQUARES: f"{shown.loc[SQUARES].iloc[0]:.0f}",
    "chain changes": lambda shown, CHAIN: f"{shown.loc[CHAIN].iloc[0]:.0f}",
    "helped changes": lambda shown, HELPED: f"{shown.loc[HELPED].iloc[0]:.0f}",
    "one part": lambda equal: f"{equal.iloc[0, 1]:.0f}",
    "eleven parts": lambda equal: f"{equal.iloc[0, 2]:.0f}",
    "smallest": lambda CHANGED: f"{min(own.sum() for own in CHANGED.values()):,}",
}
