"""Draw the picture that the README and the book begin with, from the theory chapter's example.

    python scripts/first_picture.py

writes it for wide and for narrow pages, and its numbers beside it. A test computes and draws them
again, and compares.
"""

import csv
import io
from html import escape
from pathlib import Path

import numpy as np

import ppm

FOLDER = Path(__file__).resolve().parents[1] / "book" / "_static"
# the chapter's defaults
HOUSEHOLDS = "ABCDEFGH"
COUNTS = (3, 4, 4, 5, 5, 6, 7, 18)
SEED, DRAWS = 20220, 1000
STRICT = (1.0, 0.25)
FALSE_ALARMS = 0.05
GREY, BLUE, GREEN = "#6f6f6f", "#0072B2", "#009E73"


def numbers():
    """Counts, bounds, weights and one release by household; ε and detection by promise."""
    synthesizer = ppm.GammaPoisson(COUNTS, shape=1.0, rate=0.1)
    first, second, third = np.random.SeedSequence(SEED).spawn(3)
    before = synthesizer.log_likelihood(synthesizer.fit(draws=DRAWS, random_seed=first))
    bounds = ppm.record_bounds(before)
    weights = ppm.record_weights(bounds)
    weighted = synthesizer.fit(weights, draws=DRAWS, random_seed=second)
    after = ppm.record_bounds(synthesizer.log_likelihood(weighted), weights)
    release = np.asarray(synthesizer.predict(weighted, releases=1, random_seed=third))[0]
    promises = [
        ("all weights 1", ppm.epsilon(bounds.max()), "estimated"),
        ("the paper's weights", ppm.epsilon(after.max()), "estimated"),
        *(("public limits", epsilon, "every database") for epsilon in STRICT),
    ]
    return {
        "households": list(zip(COUNTS, bounds, weights, after, release, strict=True)),
        "promises": [
            (name, epsilon, ppm.disclosure.detection_limit(FALSE_ALARMS, epsilon), holds)
            for name, epsilon, holds in promises
        ],
    }


def share(detected):
    return "over 99 %" if detected > 0.99 else f"{100 * detected:.1f} %"


def words(found):
    """What the picture shows, for those who do not see it."""
    bounds, weights, after = np.array(found["households"])[:, 1:4].T
    riskiest = HOUSEHOLDS[weights.argmin()]
    (_, epsilon, detected, _), *limits = found["promises"][1:]
    under = " and ".join(f"{share(row[2])} at ε = {row[1]:g}" for row in limits)
    return (
        f"Left: eight households. {riskiest} has by far the largest bound, {bounds.max():.1f} nats;"
        f" it gets the weight {weights.min():.2f}, and the largest weighted bound of the second "
        f"fit is {after.max():.1f} nats. Synthetic counts stand below. Right: how often a test "
        f"with {100 * FALSE_ALARMS:.0f} % false alarms can detect a value that took part: "
        f"{share(detected)} if the estimated 2Δ of {epsilon:.1f} were an ε for every database; "
        f"under public limits, which give one, at most {under}."
    )


def table(found):
    """The numbers, as CSV."""
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\n")
    rows.writerow(["household", "count", "bound before", "weight", "bound after", "synthetic"])
    for name, (count, bound, weight, after, synthetic) in zip(
        HOUSEHOLDS, found["households"], strict=True
    ):
        rows.writerow(
            [name, count, f"{bound:.4f}", f"{weight:.4f}", f"{after:.4f}", int(synthetic)]
        )
    rows.writerow([])
    rows.writerow(["promise", "epsilon", "detected at most", "holds for"])
    for name, epsilon, detected, holds in found["promises"]:
        rows.writerow([name, f"{epsilon:.4f}", f"{detected:.4f}", holds])
    return buffer.getvalue()


def text(x, y, content, *, size=16, anchor="start", colour="#222222", bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{colour}"{weight}>{escape(content)}</text>'
    )


def line(x1, y1, x2, y2, colour, width=1.0, dash=""):
    dash = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}"{dash}/>'
    )


def box(x, y, width, height, colour, *, filled=True):
    fill = colour if filled else "#ffffff"
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
    )


def households(found, x, y, width):
    """What the mechanism does: counts, bounds before and after, weights, a release."""
    rows = np.array(found["households"])
    side = 92
    gap = (width - side) / len(rows)
    floor, high = y + 245, 150
    drawn = [
        text(x, y + 20, "What it does", size=19, bold=True),
        text(x, y + 62, "Confidential"),
        text(x, y + 112, "Bound (nats)"),
        text(x, y + 136, "○ before", colour=GREY),
        text(x, y + 158, "■ after", colour=BLUE),
        text(x, y + 292, "Weight"),
        text(x, y + 340, "Released"),
        line(x + side, floor, x + width, floor, "#bbbbbb"),
    ]
    top = rows[:, 1].max()
    level = floor - high * rows[:, 3].max() / top
    drawn.append(line(x + side, level, x + width, level, BLUE, 1.2, "5 4"))
    drawn.append(text(x, level + 5, f"Δ = {rows[:, 3].max():.1f}", colour=BLUE))
    for number, (count, bound, weight, after, synthetic) in enumerate(rows):
        middle = x + side + gap * (number + 0.5)
        drawn += [
            text(middle, y + 62, f"{count:.0f}", anchor="middle", bold=True),
            line(middle, floor - high * bound / top, middle, floor - high * after / top,
                 "#cccccc", 3),
            f'<circle cx="{middle:.1f}" cy="{floor - high * bound / top:.1f}" r="6" '
            f'fill="#ffffff" stroke="{GREY}" stroke-width="2.5"/>',
            box(middle - 5, floor - high * after / top - 5, 10, 10, BLUE),
            box(middle - 0.3 * gap, y + 301 - 34 * weight, 0.6 * gap, 34 * weight, BLUE),
            text(middle, y + 340, f"{synthetic:.0f}", anchor="middle", bold=True, colour=GREEN),
        ]
    return drawn


def promises(found, x, y, width):
    """What the guarantee is worth: what a test could detect, at the most."""
    drawn = [
        text(x, y + 20, "What its guarantee is worth", size=19, bold=True),
        text(x, y + 46, f"At {100 * FALSE_ALARMS:.0f} % false alarms, a test detects a"),
        text(x, y + 66, "value that took part: at most …"),
    ]
    for number, (name, epsilon, detected, holds) in enumerate(found["promises"]):
        here = y + 104 + 62 * number
        strict = holds == "every database"
        shown = f"ε = {epsilon:g}" if strict else f"2Δ = {epsilon:.1f}"
        drawn += [
            text(x, here, f"{name}, {shown}"),
            box(x, here + 8, width, 16, "#dddddd", filled=False),
            box(x, here + 8, width * detected, 16, GREEN if strict else GREY, filled=strict),
            text(x + width - 6 if detected > 0.5 else x + width * detected + 8, here + 21.5,
                 share(detected), size=15, anchor="end" if detected > 0.5 else "start"),
        ]
    drawn += [
        text(x, y + 340, "□ estimate", size=15, colour=GREY),
        text(x + 105, y + 340, "■ for every database", size=15, colour="#00694D"),
    ]
    return drawn


def svg(found, *, narrow=False):
    """The picture: panels side by side, or one below the other."""
    width, height = (440, 730) if narrow else (980, 362)
    left = 424 if narrow else 560
    panels = households(found, 8, 4, left)
    panels += promises(found, *((8, 374, 424) if narrow else (644, 4, 328)))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="t d" font-family="Helvetica, Arial, sans-serif">',
        '<title id="t">What the pseudo posterior mechanism does, and what its guarantee is worth'
        "</title>",
        f'<desc id="d">{escape(words(found))}</desc>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *panels,
        "</svg>",
    ]) + "\n"


def files():
    """Name of each file, within the book's static files, and what belongs into it."""
    found = numbers()
    return {
        "first.svg": svg(found),
        "figures/fig-first.svg": svg(found, narrow=True),
        "figures/fig-first.csv": table(found),
    }


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_text(content, "utf-8")
    print(words(numbers()))
