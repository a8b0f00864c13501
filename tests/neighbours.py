"""What enters the noise of a mechanism with one column, of a table and of its neighbours."""

import numpy as np

from ppm.release import bins, means
from ppm.release.mechanisms import clipped


def totals_of(monkeypatch, mechanism, plan, table):
    """Totals, by how much a record may move them, and ε, of each call for noise.

    A value that is NaN is not used: it enters no count and no sum, while its record stays.
    """
    module = bins if isinstance(mechanism, bins.Bins) else means
    seen, counted, totals = [], bins.counted, means._Group.totals

    def noted(totals, moved, epsilon, **_):
        seen.append((np.array(totals), moved, epsilon))
        return seen[-1][0]

    def used(values):
        return values[~np.isnan(values)]

    with monkeypatch.context() as patch:
        patch.setattr(module, "noisy_integers", noted)
        patch.setattr(bins, "counted", lambda values, ends: counted(used(values), ends))
        patch.setattr(
            means._Group, "totals", lambda group, values: totals(group, used(values))
        )
        mechanism.release(clipped(plan, table), plan, random_seed=1)
    return seen


def losses(monkeypatch, mechanism, plan, table, column, rows=None):
    """Largest log ratio of all noisy numbers, where one record's value is not used, by record."""
    whole = totals_of(monkeypatch, mechanism, plan, table)
    for row in range(len(table)) if rows is None else rows:
        values = table[column].where(np.arange(len(table)) != row)
        fewer = totals_of(
            monkeypatch, mechanism, plan, table.assign(**{column: values})
        )
        pairs = [*zip(whole, fewer, strict=True)]
        # noise that differs in number or scale tells everything
        if any(a.shape != b.shape or rest != also for (a, *rest), (b, *also) in pairs):
            yield np.inf
            continue
        yield sum(
            epsilon / moved * np.abs(with_it - without).sum()
            for (with_it, moved, epsilon), (without, *_) in pairs
        )


def with_noise(monkeypatch, module, noise):
    """Put a fixed result in the place of each noisy number: what follows must be its function."""
    results = np.random.default_rng(5)

    def fixed(totals, moved, epsilon, **_):
        return np.rint(moved * results.normal(*noise, np.shape(totals))).astype(int)

    monkeypatch.setattr(module, "noisy_integers", fixed)


def released_after(monkeypatch, module, release, mechanism, tables):
    """Three releases of each table with the same noisy numbers, whatever its values are."""
    for table in tables:
        with monkeypatch.context() as patch:
            with_noise(patch, module, (60, 30))
            yield release(mechanism, table, releases=3)
