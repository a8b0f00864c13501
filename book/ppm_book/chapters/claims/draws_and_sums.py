"""Claims and numbers of the chapter on draws and sums."""

import numpy as np

from ppm_book.chapters import page


def drawn_errors(in_errors):
    """Noise of a draw in sampling errors, from 1,000 records to a million."""
    return in_errors["draw"].to_numpy()


def at_the_dot(drawn, equal, epsilon, reach):
    """Noise of a draw as a share of the uniform draw's, where the sum's is equal."""
    return drawn(equal[epsilon], epsilon)[1] / (reach / np.sqrt(3))


def beside_line(drawn, kappa, widths):
    """Exact noise of a draw over that of the line, from n ε = 1,000 on."""
    products = np.geomspace(1e3, 1e6, 13)
    return [
        drawn(product / epsilon, epsilon)[1] * np.sqrt(product * kappa)
        for epsilon in (widths[0], widths[-1])
        for product in products
    ]


def ten_draws(drawn, epsilon):
    """Noise of the average of ten draws at a tenth of ε over that of one draw."""
    ten = drawn(100_000, epsilon / 10)[1] / np.sqrt(10)
    return ten / drawn(100_000, epsilon)[1]


def steps(medians):
    """Powers of n with which both draws of a median get narrower."""
    return np.diff(np.log10(medians.to_numpy()), axis=0)


def edge(drawn, epsilon, reach):
    """Mean and noise of a draw if the mean of the values lies outside."""
    return drawn(100_000, epsilon, 1.2 * reach)


def narrower(edge, drawn, epsilon):
    return drawn(100_000, epsilon)[1] / edge[1]


def at_twenty(meeting, drawn, epsilon):
    """Records at which 20 draws are as noisy as 20 sums."""
    share = epsilon / 20
    return meeting(lambda n: drawn(n, share)[1], share)


def apart_from(value, within, found):
    """Whether an estimate with its standard error surely lies this near a value."""
    low, high = (value - within, 0), (value + within, 0)
    return page.surely_less(low, found) and page.surely_less(found, high)


def of_draws(fitted):
    return tuple(fitted.loc["draw"])


def of_sums(fitted):
    return tuple(fitted.loc["noisy sum"])


CLAIMS = {
    "draw-keeps-pace": lambda drawn_errors: (
        drawn_errors.max() < 1.1 * drawn_errors.min()
        and drawn_errors[0] <= drawn_errors[1:].min()
    ),
    "nearly-uniform-at-the-dot": lambda at_the_dot: 0.85 < at_the_dot < 1,
    "on-the-line": lambda beside_line: np.allclose(beside_line, 1, rtol=0.01, atol=0),
    "ten-are-like-one": lambda ten_draws: abs(ten_draws - 1) < 0.01,
    "pointed-like-1-over-n": lambda steps: np.allclose(steps[:, 0], -1, atol=0.01),
    "rounded-like-root": lambda steps: np.allclose(steps[:, 1], -0.5, atol=0.01),
    "two-draws-better": lambda in_errors: np.all(
        (in_errors["two draws"] < in_errors["draw"]) == (in_errors.index >= 100_000)
    ),
    "still-far": lambda in_errors: np.all(
        in_errors["two draws"] > 4 * in_errors["noisy sum"]
    ),
    "narrow-at-the-edge": lambda narrower: narrower > 2,
    "limits-keep-the-root": lambda limited: np.allclose(
        limited["exponent"], -0.5, atol=0.02
    ),
    "limits-pull-the-mean": lambda limited: (
        limited.loc["0.5", "mean off by"] > 2 > limited.loc["0.1", "mean off by"]
    ),
    "dot-moves-right": lambda limited: limited["equal at"].is_monotonic_increasing,
    "a-few-hundred-records": lambda limited, equal, epsilon: (
        max(equal[epsilon], limited["equal at"].max()) < 400
    ),
    "library-keeps-the-root": lambda of_draws: apart_from(-0.5, 0.05, of_draws),
    "sums-fall-like-1-over-n": lambda of_sums: apart_from(-1.0, 0.1, of_sums),
    "dot-at-twenty": lambda at_twenty, drawn, epsilon, reach: (
        drawn(at_twenty, epsilon / 20)[1] > 0.85 * reach / np.sqrt(3)
    ),
}
NUMBERS = {
    "draw, 1,000": lambda in_errors: f"{in_errors.loc[1_000, 'draw']:.1f}",
    "sum, 1,000": lambda in_errors: f"{in_errors.loc[1_000, 'noisy sum']:.1f}",
    "draw, 100,000": lambda in_errors: f"{in_errors.loc[100_000, 'draw']:.1f}",
    "sum, 100,000": lambda in_errors: f"{in_errors.loc[100_000, 'noisy sum']:.2f}",
    "equal": lambda equal, epsilon: f"{equal[epsilon]:,.0f}",
    "times": lambda equal, epsilon, clip, reach: (
        f"{equal[epsilon] * epsilon * reach / clip:.1f}"
    ),
    "of uniform": lambda at_the_dot: f"{100 * at_the_dot:.0f}",
    "ten draws": lambda ten_draws: f"{ten_draws:.2f}",
    "edge narrower": lambda narrower: f"{narrower:.0f}",
    "edge off": lambda edge, reach: f"{(1.2 * reach - edge[0]) / edge[1]:.0f}",
    "smooth weight": lambda limited: limited.index[0],
    "noise, smooth": lambda limited: f"{limited['noise'].iloc[0]:.1f}",
    "noise, 0.1": lambda limited: f"{limited.loc['0.1', 'noise']:.1f}",
    "off, 0.5": lambda limited: f"{limited.loc['0.5', 'mean off by']:.0f}",
    "equal, 0.1": lambda limited: f"{limited.loc['0.1', 'equal at']:.0f}",
    "uniform, 0.1": lambda limited, sum_sd, epsilon, reach: (
        f"{100 * sum_sd(limited.loc['0.1', 'equal at'], epsilon) / reach * np.sqrt(3):.0f}"
    ),
    "equal, 0.5": lambda limited: f"{limited.loc['0.5', 'equal at']:.0f}",
    "equal, 20": lambda at_twenty: f"{at_twenty:,.0f}",
}
