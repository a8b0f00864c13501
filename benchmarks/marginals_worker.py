"""The half of the comparison that runs in mbi's own environment: see ``marginals.py``.

It is started by ``marginals.py`` as ``python marginals_worker.py INPUT OUTPUT`` with mbi's
interpreter, and imports nothing of the library. INPUT and OUTPUT are NumPy archives.

What is fitted is mbi's: the model of potentials, its loss and mirror descent. The choice of what to
measure follows AIM (McKenna, Mullins, Sheldon and Miklau, 2022), for predictors that are public:
only marginals with income are measured, and the expected marginals of a model are those over the
predictors as they are.
"""

import itertools
import sys
from importlib.metadata import version

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)

import jax.numpy as jnp  # noqa: E402
from mbi import CliqueVector, Domain, Factor, LinearMeasurement, WeightedQuery  # noqa: E402
from mbi.estimation import MirrorDescent  # noqa: E402

INCOME = "income"
# share of a round's ε that goes to its choice; AIM's
SELECTING = 0.1


def choose(scores, epsilon, rng):
    """Exponential mechanism; a score moves by at most 1 where one income takes no part."""
    shares = np.exp(0.5 * epsilon * (scores - scores.max()))
    return rng.choice(scores.size, p=shares / shares.sum())


class PublicPredictors:
    """Marginals of income with predictors that are public, record by record.

    It stands in the place of one of mbi's marginal oracles: there the predictors would be part of
    the model, here they are what they are.
    """

    def __init__(self, predictors, sizes):
        found = np.unique(predictors, axis=0, return_inverse=True, return_counts=True)
        patterns, of_record, count = found
        self.of_record = of_record.ravel()
        self.count = jnp.asarray(count, dtype=float)
        self.codes = patterns.T
        self.sizes = sizes

    def cell(self, predictors):
        """Each pattern's cell in the table of some predictors."""
        code = np.zeros(self.count.size, dtype=np.int64)
        for place in predictors:
            code = code * self.sizes[place] + self.codes[place]
        return code

    def shares(self, potentials):
        """Probabilities of income, (bins, patterns)."""
        total = 0.0
        for clique in potentials.cliques:
            values = potentials[clique].values
            values = jnp.moveaxis(
                values, potentials[clique].domain.attributes.index(INCOME), 0
            )
            others = [a for a in potentials[clique].domain.attributes if a != INCOME]
            total = total + values.reshape(values.shape[0], -1)[:, self.cell(others)]
        return jax.nn.softmax(total, axis=0)

    def __call__(self, potentials, total=1.0, *, constraints=()):
        expected = self.shares(potentials) * self.count * (total / self.count.sum())
        marginals = {}
        for clique in potentials.cliques:
            domain = potentials[clique].domain
            others = [a for a in domain.attributes if a != INCOME]
            table = jnp.zeros(
                (expected.shape[0], int(np.prod([self.sizes[a] for a in others])))
            )
            table = table.at[:, self.cell(others)].add(expected)
            table = table.reshape(-1, *(self.sizes[a] for a in others))
            table = jnp.moveaxis(table, 0, domain.attributes.index(INCOME))
            marginals[clique] = Factor(domain, table)
        return CliqueVector(potentials.domain, potentials.cliques, marginals)


def nearest_counts(counts, total):
    """Counts of at least 0 with this sum that lie nearest to the noisy ones."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    return np.maximum(counts - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


def joined(counts, groups):
    """Joins neighbouring bins to at most so many, of about equal counts: each bin's number."""
    middle = np.cumsum(counts) - counts / 2
    group = np.minimum((groups * middle / counts.sum()).astype(int), groups - 1)
    return np.unique(group, return_inverse=True)[1].ravel()


def release(income, public, bins, epsilon, *, first, rounds, groups, iterations, rng):
    """Synthetic bins of income, one per record.

    ``first`` of ε goes to the bins of income alone. From what was seen there bins are
    joined for all that follows; a synthetic record draws among joined bins as the first
    measurement says.
    """
    records = income.size
    spent = first * epsilon
    noisy = np.bincount(income, minlength=bins) + rng.laplace(0.0, 1 / spent, bins)
    shares = nearest_counts(noisy, records)
    group = joined(shares, groups)
    coarse, width = group[income], int(group.max()) + 1

    names = list(range(len(public.sizes)))
    domain = Domain((INCOME, *names), (width, *public.sizes))
    estimator = MirrorDescent(marginal_oracle=public)
    # a joined bin has the noise of all its bins
    weights = 1 / np.sqrt(np.bincount(group))
    alone = np.bincount(group, weights=noisy) * weights
    query = WeightedQuery(weights)
    measured = [LinearMeasurement(alone, (INCOME,), 2**0.5 / spent, query)]
    pairs = [*itertools.combinations(names, 1), *itertools.combinations(names, 2)]
    candidates = [(INCOME, *some) for some in pairs]
    cells = {c: public.cell(c[1:])[public.of_record] for c in candidates}
    sizes = {c: int(np.prod([public.sizes[a] for a in c[1:]])) for c in candidates}
    answers = {
        c: np.bincount(coarse * sizes[c] + cells[c], minlength=width * sizes[c])
        for c in candidates
    }

    def fitted(before):
        return estimator.estimate(
            domain,
            measured,
            known_total=records,
            iters=iterations,
            warm_start=before,
            tol=1e-6,
        )

    def expected(model, clique):
        by_pattern = np.asarray(public.shares(model.potentials) * public.count)
        table = np.zeros((sizes[clique], width))
        np.add.at(table, public.cell(clique[1:]), by_pattern.T)
        return table.T.ravel()

    model = fitted(None)
    amount, last = (epsilon - spent) / rounds, False
    while not last:
        left = epsilon - spent
        if left < 2 * amount:
            amount, last = left, True
        spent += amount
        # the scale of Laplace noise, which is its expected size, too
        scale = 1 / (amount * (1 - SELECTING))
        scores = np.array(
            [
                np.abs(answers[c] - expected(model, c)).sum() - scale * answers[c].size
                for c in candidates
            ]
        )
        clique = candidates[choose(scores, amount * SELECTING, rng)]
        value = answers[clique] + rng.laplace(0.0, scale, answers[clique].size)
        measured.append(LinearMeasurement(value, clique, 2**0.5 * scale))
        before, model = expected(model, clique), fitted(model)
        moved = np.abs(expected(model, clique) - before).sum()
        if moved <= scale * value.size:
            # nothing was learnt that is larger than the noise: AIM's answer is half the noise
            amount *= 2
    assert spent <= epsilon * (1 + 1e-9)

    cumulative = np.cumsum(np.asarray(public.shares(model.potentials)), axis=0)
    limits = cumulative[:, public.of_record]
    drawn = (rng.random(records) * limits[-1] >= limits).sum(axis=0)
    out = np.empty(records, dtype=np.int64)
    for number in range(width):
        inside = np.flatnonzero(group == number)
        members = np.flatnonzero(drawn == number)
        p = shares[inside] if shares[inside].sum() > 0 else np.ones(inside.size)
        out[members] = rng.choice(inside, members.size, p=p / p.sum())
    return out


def main():
    source, target = sys.argv[1:]
    given = dict(np.load(source))
    public = PublicPredictors(given["predictors"], given["sizes"].tolist())
    bins = int(given["bins"])
    out = np.empty((given["epsilons"].size, given["income"].size), dtype=np.int64)
    for job, (epsilon, seed) in enumerate(
        zip(given["epsilons"], given["seeds"], strict=True)
    ):
        out[job] = release(
            given["income"],
            public,
            bins,
            float(epsilon),
            first=float(given["first"]),
            rounds=int(given["rounds"]),
            groups=int(given["joined"]),
            iterations=int(given["iterations"]),
            rng=np.random.default_rng(int(seed)),
        )
        print(f"mbi: {job + 1} of {len(out)}", file=sys.stderr)
    np.savez(target, income=out, by=f"mbi {version('mbi')}, jax {version('jax')}")


if __name__ == "__main__":
    main()
