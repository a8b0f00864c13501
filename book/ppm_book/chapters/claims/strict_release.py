"""Claims and numbers of the chapter on a strict release."""

import numpy as np

import ppm
from ppm_book.chapters import application, page, rivals

# claims ask for it by this name
at = rivals.has_widths


def measures(found):
    """What is compared: a value and its standard error, less is better."""
    return {
        "levels": lambda *place: rivals.typical(found, *place),
        "level": lambda *place: rivals.squared(found, *place, "lower × 0.8"),
        "shapes": lambda *place: rivals.squared(found, *place, *rivals.SHAPES),
        "tail": lambda *place: rivals.typical(
            found, *place, "top tenth", "top tenth × 1.3"
        ),
    }


def nearer(measures):
    def nearer(one, other, goal="levels"):
        """Whether one mechanism and ε is surely nearer than another."""
        return page.surely_less(measures[goal](*one), measures[goal](*other))

    return nearer


def share(found):
    def share(name, width, change="lower × 0.8"):
        """Median share of a change that releases show; and its standard error."""
        return application.median(
            rivals.of(found, name, width, change)["share"].to_numpy()
        )

    return share


def between(share):
    def between(low, high, *place):
        """Whether a median share lies surely between both."""
        return page.surely_less((low, 0), share(*place)) and page.surely_less(
            share(*place), (high, 0)
        )

    return between


def alone(ALONE):
    return ALONE, np.nan


def free(FREE):
    return FREE, np.nan


def strict(MECHANISMS):
    return [*MECHANISMS]


def advised(at, nearer, alone, strict):
    def advised(name, width, *goals):
        """Whether it surely beats the published records, and nothing surely beats it."""
        return at(width) and all(
            nearer((name, width), alone, goal)
            and not any(
                nearer((other, width), (name, width), goal)
                for other in strict
                if other != name
            )
            for goal in goals
        )

    return advised


def published_blind(rehearsal):
    first = rehearsal.table.index[0]
    return rehearsal.table["change"][first] > 90


def change_bought(rehearsal, chosen, widths):
    row = str(chosen[widths[0]].mechanism), widths[0]
    return rehearsal.surely_nearer(row, "change")


def bins_nearer(at, nearer, BINS, LIMITS, OWN):
    """Whether the bins are surely nearer than either posterior at everything."""
    return at(0.25) and all(
        nearer((BINS, 0.25), (name, 0.25), goal)
        for name in (LIMITS, OWN)
        for goal in ("levels", "level", "shapes")
    )


def smallest_rmse(found, BINS):
    """Of one release at ε = 0.1, of a fall by a fifth in the smallest group."""
    return rivals.squared(found, BINS, 0.1, "smallest × 0.8")[0] ** 0.5


def smallest_not_seen(at, found, BINS):
    return at(0.1) and smallest_rmse(found, BINS) > 50


def fall_rmse(measures, BINS):
    """Of one release at ε = 0.1, of a fall by a fifth in the two lower groups."""
    return measures["level"](BINS, 0.1)[0] ** 0.5


def bins_tried(settings):
    return [bins for bins, *_ in settings]


CLAIMS = {
    "home-less-than-paper": lambda home: (
        home["H found, in 100"]["Own weights"]
        < home["H found, in 100"]["Paper's mechanism"]
    ),
    "rehearsal-published-blind": published_blind,
    "rehearsal-change-bought": change_bought,
    "shown-at-0.1": lambda at, rehearsed: (
        at(0.1)
        and max(
            rehearsed["fall shown, RMSE, %"]["0.1"],
            rehearsed["shapes shown, RMSE, %"]["0.1"],
        )
        < 50
    ),
    "about-the-least": lambda rehearsed: np.all(
        rehearsed.iloc[-1, :4] < 1.1 * rehearsed.iloc[:-1, :4].min()
    ),
    "a-thousand-need-0.1": lambda at, rehearsed, this_year: (
        at(0.05, 0.1)
        and rehearsed["fall shown, RMSE, %"]["0.1"] < 50
        and rehearsed["fall shown, RMSE, %"]["0.05"] > 50
        and 800 < this_year["group"].value_counts().iloc[0] < 1_200
    ),
    "looked-better": lambda at, rehearsed: (
        at(0.05, 0.1)
        and rehearsed["groups' means off by, %"][["0.05", "0.1"]].max()
        < rehearsed["groups' means off by, %"]["published records, ε = 0"]
    ),
    "most-bins-at-1-and-4": lambda at, chosen, settings: (
        at(1.0, 4.0)
        and all(
            (chosen[width].mechanism.bins, chosen[width].mechanism.above)
            == (max(bins_tried(settings)), max(above for *_, above in settings))
            for width in (1.0, 4.0)
        )
    ),
    "fewest-bins-at-0.05": lambda at, chosen, settings: (
        at(0.05) and chosen[0.05].mechanism.bins == min(bins_tried(settings))
    ),
    "top-tenth-worse-at-1": lambda at, rehearsed: (
        at(0.25, 1.0)
        and rehearsed["top tenth off by, %"]["1"]
        > rehearsed["top tenth off by, %"]["0.25"]
    ),
    "smallest-not-seen": smallest_not_seen,
    "few-need-more": smallest_not_seen,
    "none-nearer-to-0.1": lambda at, nearer, alone, strict: (
        at(0.05, 0.1)
        and not any(
            nearer((name, width), alone) for name in strict for width in (0.05, 0.1)
        )
    ),
    "bins-nearer-from-0.25": lambda at, widths, nearer, alone, BINS: (
        at(0.25)
        and all(nearer((BINS, width), alone) for width in widths if width >= 0.25)
    ),
    "bins-like-free-at-4": lambda at, measures, BINS, free: (
        at(4.0)
        and measures["levels"](BINS, 4.0)[0] < 1.5 * measures["levels"](*free)[0]
    ),
    "alone-shows-nothing": lambda between, alone: between(-25, 25, *alone),
    "rivals-show-most": lambda at, between, BINS, SUMS: (
        at(0.1) and all(between(60, 140, name, 0.1) for name in (BINS, SUMS))
    ),
    "own-show-half": lambda at, between, OWN: at(0.1) and between(25, 75, OWN, 0.1),
    "limits-show-a-part": lambda at, between, LIMITS: (
        at(0.1) and between(10, 90, LIMITS, 0.1)
    ),
    "sums-blind": lambda widths, measures, SUMS: all(
        measures["shapes"](SUMS, width)[0] > 50**2 for width in widths
    ),
    "bins-see-shapes": lambda at, share, BINS: (
        at(0.25) and all(share(BINS, 0.25, one)[0] > 60 for one in rivals.SHAPES)
    ),
    "bins-nearer": bins_nearer,
    "bins-nearer-than-posteriors": bins_nearer,
    "sum-below-sampling": lambda noises: (
        noises["a noisy sum"][-1] < noises["sampling error"][-1]
    ),
    "draw-above-sampling": lambda noises: np.all(
        noises["a draw"][-50:] > noises["sampling error"][-50:]
    ),
    "own-need-4": lambda at, measures, nearer, BINS, OWN: (
        at(0.25, 1.0, 4.0)
        and all(
            0.4 < measures[goal](OWN, 4.0)[0] / measures[goal](BINS, 0.25)[0] < 1.6
            for goal in ("levels", "level")
        )
        and nearer((BINS, 0.25), (OWN, 1.0), "level")
    ),
    "shapes-need-more": lambda at, nearer, BINS, OWN: (
        at(0.25, 4.0) and nearer((BINS, 0.25), (OWN, 4.0), "shapes")
    ),
    "advise-bins-0.1": lambda advised, BINS: advised(BINS, 0.1, "level"),
    "fell-not-how-far": lambda at, measures, BINS: (
        at(0.1) and 25 < fall_rmse(measures, BINS) < 50
    ),
    "enough-to-see-a-fall": lambda at, advised, measures, BINS: (
        at(0.1) and advised(BINS, 0.1, "level") and fall_rmse(measures, BINS) < 50
    ),
    "both-took-0.25": lambda at, advised, nearer, alone, strict, BINS: (
        at(0.1, 0.25)
        and advised(BINS, 0.25, "levels", "level")
        and not any(nearer((name, 0.1), alone) for name in strict)
    ),
    "advise-bins-0.25": lambda advised, BINS: advised(BINS, 0.25, "levels", "level"),
    "advise-raked": lambda advised, RAKED: advised(RAKED, 0.25, "shapes", "tail"),
    "raked-see-the-tail": lambda at, nearer, measures, strict, BINS, RAKED: (
        at(0.25)
        and not nearer((BINS, 0.25), (RAKED, 0.25), "shapes")
        and min(strict, key=lambda name: measures["tail"](name, 0.25)[0]) == RAKED
        and nearer((RAKED, 0.25), (BINS, 0.25), "tail")
    ),
}


def shown(rows, name, width):
    """What stands in a table at an ε, or a dash where a run has none."""
    return rows[name].get(f"{width:g}", "–")


def amount(rows, name, width):
    value = rows[name].get(f"{width:g}", np.nan)
    return "–" if np.isnan(value) else f"{value:.1f}"


NUMBERS = {
    "m": lambda releases: f"{releases}",
    "ε planned": lambda epsilon: f"{epsilon:g}",
    "own found": lambda home: f"{home['H found, in 100']['Own weights']:.0f}",
    "limit": lambda: f"{100 * ppm.pdp.detection_limit(0.05, 1.0):.1f}",
    "ordinary spread": lambda home: f"{home['± of μ']['Ordinary posterior']:.1f}",
    "own spread": lambda home: f"{home['± of μ']['Own weights']:.1f}",
    "alone, levels": lambda levels, BINS, ALONE: f"{levels[BINS][ALONE]:.1f}",
    "free, levels": lambda levels, BINS, FREE: f"{levels[BINS][FREE]:.1f}",
    "free, change": lambda level, BINS, FREE: level[BINS][FREE],
    "bins 0.1, change": lambda level, BINS: shown(level, BINS, 0.1),
    "bins 0.25, levels": lambda levels, BINS: amount(levels, BINS, 0.25),
    "bins 0.25, change": lambda level, BINS: shown(level, BINS, 0.25),
    "raked 0.25, shape": lambda shape, RAKED: shown(shape, RAKED, 0.25),
    "lower size": lambda this_year: (
        f"{this_year['group'].isin(['high school graduate', 'other']).sum():,}"
    ),
    "small size": lambda this_year: f"{this_year['group'].value_counts().iloc[-1]:,}",
    "small rmse": lambda found, BINS, widths: (
        f"{smallest_rmse(found, BINS):.0f}" if 0.1 in widths else "–"
    ),
}
