"""Random numbers of a rehearsal: rows share them, and nothing else does."""

import numpy as np
from incomes import year

from ppm.release import Bins, Means, ReleasePlan, rehearsal


def state(seed):
    """What a source of randomness draws first."""
    return np.random.default_rng(seed).bit_generator.state["state"]["state"]


def test_rows_share_random_numbers_which_samples_repeats_and_tables_do_not(monkeypatch):
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
    plan = ReleasePlan(
        year(1),
        confidential="income",
        groups="region",
        limits=(0, 500_000),
        mechanism=Bins(5),
        epsilon=1.0,
    )
    plan.rehearse([Means()], repeats=3, random_seed=4)
    assert len(samples) == 3 == len({*samples})
    by_row = {name: [s for other, s in draws if other == name] for name, _ in draws}
    one, *others = by_row.values()
    assert len(others) == 3 and all(one == other for other in others)
    # each of three repeats, of the table as it is and changed
    assert len(one) == len({*one}) > 3
    assert not {*one} & {*samples}
