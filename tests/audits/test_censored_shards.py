"""The exact audit of shards: one shard's loss where they are disjoint, and more where not."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import ppm

PRIOR = {"shape": 0.5, "rate": 0.1}
CENSORS = [
    ppm.Censoring(*limits, smooth)
    for limits in ((-3.0, -1.0), (-2.75, -1.75), (-6.0, -2.0))
    for smooth in (True, False)
]
# the upper limit is that of a count of 40 where it is likeliest
NEAR = ppm.Censoring(-6.0, -2.8, smooth=False)


def databases():
    """Databases with shards, drawn, and some with outliers or nothing but equal counts."""
    rng = np.random.default_rng(12)
    for place in range(120):
        size, number = rng.choice([8, 20, 60]), rng.choice([2, 4])
        counts = rng.poisson(rng.choice([0.3, 2.0, 5.0, 30.0]), size)
        if place % 3 == 0:
            counts[rng.integers(size)] = rng.choice([12, 40, 300])
        if place % 20 == 1:
            counts[:] = counts[0]
        yield counts, np.array_split(rng.permutation(size), number)


def by_size(number):
    """A rule that puts the smallest counts into the first shard, and so on: it must not be."""
    return lambda counts: np.array_split(np.argsort(counts, kind="stable"), number)


def test_disjoint_shards_lose_what_the_worst_of_them_loses_and_never_more_than_the_width():
    found = []
    for place, (counts, shards) in enumerate(databases()):
        censor = CENSORS[place % len(CENSORS)]
        whole = ppm.audits.censored_shards(counts, shards, censor, **PRIOR)
        single = [
            ppm.audits.censored(counts[rows], censor, **PRIOR).attrs["loss"] for rows in shards
        ]
        assert whole.attrs["loss"] == pytest.approx(max(single), abs=1e-12)
        found.append(whole.attrs["loss"] / censor.width)
        # what the shards together would be allowed, if their widths added up
        assert found[-1] < len(shards)
    assert max(found) <= 1.0 + 1e-12
    assert max(found) > 0.999


def joint_loss(counts, shards, censor, weights=None, points=4_001):
    """Largest log ratio of the joint densities of all μ with and without each record, on a grid.

    Shards may be a function of the record that is absent, or None.
    """
    grid = np.linspace(-40.0, 12.0, points)
    log_p = counts[:, None] * grid - np.exp(grid) - gammaln(counts + 1.0)[:, None]
    terms = censor.term(log_p if weights is None else weights[:, None] * log_p)
    prior = 0.5 * grid - 0.1 * np.exp(grid)

    def densities(absent):
        for rows in shards(absent) if callable(shards) else shards:
            values = prior + terms[[row for row in rows if row != absent]].sum(axis=0)
            yield values - logsumexp(values)

    losses = []
    for record in range(counts.size):
        first, second = (
            one - other
            for one, other in zip(densities(None), densities(record), strict=True)
        )
        joint = first[:, None] + second
        losses.append(np.abs(joint).max())
    return losses


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("shards", [[[0, 2, 4], [1, 3]], [[0, 2, 4], [1, 3, 4]]], ids=str)
def test_the_audit_is_what_the_joint_density_of_two_shards_gives_on_a_grid(shards, smooth):
    censor = ppm.Censoring(-3.5, -1.5, smooth)
    counts = np.array([5, 6, 0, 4, 40])
    found = ppm.audits.censored_shards(counts, shards, censor, **PRIOR)
    assert found["loss"].values == pytest.approx(joint_loss(counts, shards, censor), abs=5e-3)


WEIGHTS = np.array([1.0, 0.3, 0.8, 0.5, 0.9])


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["all 1", "weights"])
def test_each_record_has_its_own_weight_also_in_a_shard_that_it_moves_to(weights):
    censor = ppm.Censoring(-3.5, -1.5)
    counts = np.array([5, 6, 0, 4, 40])
    shards = [[4, 1], [0, 2, 3]]
    found = ppm.audits.censored_shards(counts, shards, censor, weights=weights, **PRIOR)
    exact = joint_loss(counts, shards, censor, weights, 1_001)
    assert found["loss"].values == pytest.approx(exact, abs=5e-3)
    other = ppm.audits.censored_shards(counts, shards, censor, weights=WEIGHTS[::-1], **PRIOR)
    assert other["loss"].values != pytest.approx(exact, abs=0.05)
    rule = by_size(2)
    moved = ppm.audits.censored_shards(counts, rule, censor, weights=weights, **PRIOR)
    assert moved["moves"].any() and not moved["moves"].all()

    def asked_again(absent):
        values = counts.astype(float)
        if absent is not None:
            values[absent] = np.nan
        return rule(values)

    exact = joint_loss(counts, asked_again, censor, weights, 1_001)
    assert moved["loss"].values == pytest.approx(exact, abs=5e-3)


def test_a_record_in_two_shards_is_paid_for_twice():
    counts = np.array([5, 5, 6, 40, 4, 6, 5])
    disjoint = ppm.audits.censored_shards(counts, [[0, 1, 2, 3], [4, 5, 6]], NEAR, **PRIOR)
    assert 0.99 * NEAR.width < disjoint.attrs["loss"] <= NEAR.width
    twice = ppm.audits.censored_shards(counts, [[0, 1, 2, 3], [3, 4, 5, 6]], NEAR, **PRIOR)
    assert 1.9 * NEAR.width < twice.attrs["loss"] <= 2 * NEAR.width
    # the others are in one shard, and lose no more than before
    assert np.delete(twice["loss"].values, 3).max() <= NEAR.width


def test_shards_by_the_size_of_the_counts_exceed_the_width_and_shards_by_row_do_not():
    counts = np.array([0, 1, 2, 3, 9, 10, 11, 12, 30, 31, 40, 60])
    censor = ppm.Censoring(-6.0, -2.5, smooth=False)
    reacts = ppm.audits.censored_shards(counts, by_size(4), censor, **PRIOR)
    assert reacts.attrs["loss"] > 2 * censor.width
    assert bool(reacts["moves"][0])
    # kept as they came out, the same shards are within it: the asking again is what costs
    kept = ppm.audits.censored_shards(counts, by_size(4)(counts), censor, **PRIOR)
    assert kept.attrs["loss"] <= censor.width
    by_row = ppm.audits.censored_shards(
        counts, lambda counts: [np.arange(k, counts.size, 4) for k in range(4)], censor, **PRIOR
    )
    assert not by_row["moves"].any()
    assert by_row.attrs["loss"] <= censor.width


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": [3]}, "at least two records"),
        ({"censor": (-3, -1)}, "censor must be a ppm.Censoring"),
        ({"shards": [[0, 3]]}, "shards must be a list of the rows"),
        ({"shards": [[0, 0]]}, "none twice in a shard"),
        ({"shards": [[]]}, "no shard empty"),
        ({"shards": 2}, "shards must be a list of the rows"),
        ({"shards": lambda counts: [[0], [1, 2]][: 1 + np.isnan(counts).any()]}, "same number"),
        ({"weights": [1.0]}, "weights has shape"),
        ({"rate": 0.0}, "rate must be a finite number above 0"),
    ],
)
def test_what_cannot_be_audited_is_refused(change, message):
    arguments = {"counts": [3, 4, 9], "shards": [[0], [1, 2]], "censor": NEAR} | change
    with pytest.raises(ValueError, match=message) as error:
        ppm.audits.censored_shards(**arguments)
    assert "\n" not in str(error.value)
