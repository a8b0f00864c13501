"""Synthetic values from two noisy sums of each group: published values, moved and stretched."""

import numpy as np
from scipy.optimize import least_squares

from ppm.checks import as_ends, as_list, check_count, check_flag, check_number
from ppm.release.histogram import by_group
from ppm.release.noise import NoisyRelease, check_epsilon, noisy_integers
from ppm.release.statement import WORDS, noisy_guarantee
from ppm.seeds import generator, streams

__all__ = ["sums_release"]

# a clipped deviation is rounded to a whole number of this part of its limit
_STEPS = 2**20


def sums_release(
    values,
    published,
    limits,
    *,
    epsilon,
    groups=None,
    published_groups=None,
    clip=(1.5, 2.2),
    share=0.6,
    releases=1,
    secure_noise=False,
    random_seed=None,
):
    r"""Draw published values, moved and stretched until they have two noisy sums of each group.

    Parameters
    ----------
    values : array_like, shape (records,)
        Confidential values, on a scale on which their spread is roughly symmetric.
    published : array_like, shape (published records,)
        **Published** values of another table, on the same scale; two different ones at least.
    limits : (float, float)
        The lowest and the highest synthetic value, increasing; **public**.
    epsilon : float
        ε of everything that is returned, together, from 1e-9 to 30 nats.
    groups, published_groups : array_like, shape (records,) or (published records,), optional
        **Public** labels, none missing. A group without two different published values takes those
        of all groups.
    clip : (float, float), default (1.5, 2.2)
        Where deviations from the published mean are cut off, in published standard deviations, for
        their sum and for the sum of their squares; **public**.
    share : float, default 0.6
        Share of ε for the first sum, between 0 and 1; **public**.
    releases, secure_noise, random_seed
        As for :func:`ppm.release.histogram.histogram_release`.

    Returns
    -------
    ppm.release.NoisyRelease
        ``synthetic``, shape (releases, records); ``noisy["sums"]``, shape (groups, 2), in multiples
        of the clip and of half its square; ``public["centers"]``, mean and standard deviation of
        each group's published values; and ``guarantee``.

    Notes
    -----
    With the deviations :math:`z_i = (x_i - m) / s` from the published mean m, the sums are
    :math:`\sum_i \text{clip}(z_i, \pm c)` and :math:`\sum_i \min(z_i^2, d^2) - d^2 / 2`. A record
    whose value is not used is absent from both, and moves them by at most :math:`c` and :math:`d^2
    / 2`. Discrete Laplace noise of scale :math:`c / (\lambda \epsilon)` and :math:`d^2 / (2 (1 -
    \lambda) \epsilon)`, with the share λ, makes both together ε-differentially private, and so all
    groups, as each record is in one. The sums are rounded to whole multiples of a small step, so
    that the noise can be a whole number, and exact (Mironov, 2012).

    All else is post-processing. Clipping biases a mean; but the same clipping of *published* values
    is known wherever they are moved and stretched to, and so is how likely the noisy sums are
    there. The most probable move and stretch are taken, with a normal public prior around the
    published table (half a standard deviation; 0.3 for the logarithm of the stretch), so that where
    the noise drowns the sums, the release is the published table.

    Noisy sums see no other change of shape, for example where a tenth of the values becomes 0.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> last_year, now = np.random.default_rng(1).normal([[0.0], [0.5]], size=(2, 2000))
    >>> found = ppm.release.sums.sums_release(now, last_year, (-9, 9), epsilon=1.0, random_seed=1)
    >>> float(now.mean().round(2)), float(found.synthetic.mean().round(2))
    (0.49, 0.5)
    """
    values = as_list("values", values)
    ends = as_ends("limits", limits)
    epsilon = check_epsilon(epsilon)
    clip = as_list("clip", clip)
    if clip.size != 2 or not np.all(clip > 0):
        raise ValueError("clip must be two finite numbers above 0")
    first, second = clip
    share = check_number("share", share, above=0, below=1)
    releases = check_count("releases", releases)
    secure = check_flag("secure_noise", secure_noise)
    rows, pools = by_group(values.size, groups, published, published_groups)
    for_noise, for_drawing = map(generator, streams(random_seed, 2))

    chosen = {
        label: next((p for p in pools[label] if p.std() > 0), None) for label in rows
    }
    if any(pool is None for pool in chosen.values()):
        raise ValueError("published must have two different values at least")
    centers = {label: (pool.mean(), pool.std()) for label, pool in chosen.items()}
    deviations = [
        (values[members] - centers[label][0]) / centers[label][1]
        for label, members in rows.items()
    ]
    parts = np.transpose([_steps(each, first, second) for each in deviations])
    scales = zip(parts, (share * epsilon, (1 - share) * epsilon), strict=True)
    sums = [
        noisy_integers(part, _STEPS, spent, secure=secure, rng=for_noise) / _STEPS
        for part, spent in scales
    ]
    synthetic = np.empty((releases, values.size))
    for place, (label, members) in enumerate(rows.items()):
        mean, deviation = centers[label]
        standard = (chosen[label] - mean) / deviation
        means = [totals[place] / members.size for totals in sums]
        noises = 2**0.5 / (members.size * epsilon * np.array([share, 1 - share]))
        move, stretch = _moved(standard, means, noises, clip, members.size)
        drawn = for_drawing.choice(standard, (releases, members.size))
        moved = mean + deviation * (move + stretch * drawn)
        synthetic[:, members] = np.clip(moved, *ends)
    sentence = WORDS["statement"]["sums"].format(
        releases=releases,
        records=values.size,
        groups=len(rows),
    )
    return NoisyRelease(
        synthetic,
        {"sums": np.transpose(sums)},
        noisy_guarantee(epsilon, "sums", secure=secure),
        sentence,
        {"centers": centers},
    )


def _scores(deviations, first, second):
    """What each deviation adds to both sums, between -1 and 1."""
    square = np.clip(deviations, -second, second) ** 2
    return np.clip(deviations, -first, first) / first, 2.0 * square / second**2 - 1.0


def _steps(deviations, first, second):
    """Both sums over the records, in whole numbers of steps."""
    return [
        np.rint(_STEPS * scores).astype(np.int64).sum()
        for scores in _scores(deviations, first, second)
    ]


def _moved(standard, means, noises, clip, records):
    """The most probable move and stretch, given the noisy means of both scores."""
    if standard.size > 400:
        standard = np.quantile(standard, (np.arange(400) + 0.5) / 400)
    # of a mean score: that of a sample, and that of the noise
    spread = np.hypot(np.std(_scores(standard, *clip), axis=1) / records**0.5, noises)

    def residuals(parameters):
        move, log_stretch = parameters
        scores = _scores(move + np.exp(log_stretch) * standard, *clip)
        errors = (np.mean(scores, axis=1) - means) / spread
        return [*errors, move / 0.5, log_stretch / 0.3]

    move, log_stretch = least_squares(residuals, [0.0, 0.0], method="lm").x
    return move, np.exp(log_stretch)
