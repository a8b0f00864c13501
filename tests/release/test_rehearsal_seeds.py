"""What the releases of a rehearsal share: random numbers those of one repeat, and ε several draws."""

import numpy as np
import pytest
from incomes import year

import ppm
from ppm.release import Bins, Means, Posterior, ReleasePlan, rehearsal


def state(seed):
    """What a source of randomness draws first."""
    return np.random.default_rng(seed).bit_generator.state["state"]["state"]


def planned(column="income", mechanism=None, **given):
    return ReleasePlan(
        year(1),
        confidential=column,
        groups="region",
        limits=(0, 500_000),
        mechanism=mechanism or Bins(5),
        epsilon=1.0,
        **given,
    )


@pytest.mark.parametrize("hindsight", [False, True])
def test_rows_share_random_numbers_which_samples_repeats_and_tables_do_not(
    monkeypatch, hindsight
):
    samples, draws = [], []
    pair, draw = rehearsal._pair, rehearsal.draw

    def seen_pair(plan, public, rng):
        samples.append(rng.bit_generator.state["state"]["state"])
        return pair(plan, public, rng)

    def seen_draw(plan, table, *, random_seed, **given):
        draws.append((str(plan.mechanism), state(random_seed)))
        return draw(plan, table, random_seed=random_seed, **given)

    monkeypatch.setattr(rehearsal, "_pair", seen_pair)
    monkeypatch.setattr(rehearsal, "draw", seen_draw)
    given = {"confidential": year(2)} if hindsight else {}
    planned().rehearse([Means()], repeats=3, random_seed=4, **given)
    assert len(samples) == len({*samples}) == (0 if hindsight else 3)
    by_row = {name: [s for other, s in draws if other == name] for name, _ in draws}
    one, *others = by_row.values()
    assert len(others) == 3 and all(one == other for other in others)
    # each of three repeats, of the table as it is and of six changed ones
    assert len(one) == len({*one}) == 21
    assert not {*one} & {*samples}


def test_of_several_draws_from_a_posterior_each_has_its_part_of_epsilon(monkeypatch):
    spent, draw = {}, rehearsal.draw

    def seen(plan, table, **given):
        spent.setdefault(type(plan.mechanism).__name__, set()).add(plan.epsilon)
        return draw(plan, table, **given)

    monkeypatch.setattr(rehearsal, "draw", seen)
    posterior = Posterior(
        lambda records: ppm.GammaPoisson(records["children"], shape=2, rate=1),
        lambda published: {"mu": np.linspace(0.5, 4.0, 20)},
    )
    several = planned("children", Bins(1), releases=4)
    several.rehearse([posterior, Means()], epsilons=[0.5, 2], repeats=2, random_seed=4)
    assert spent["Posterior"] == {0.125, 0.5}
    # noisy numbers serve all releases
    assert spent["Bins"] == spent["Means"] == {0.5, 2.0}
