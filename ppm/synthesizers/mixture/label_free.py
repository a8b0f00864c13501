"""Moves of the finite mixture's sampler that leave the labels out."""

import numpy as np

from ppm.synthesizers.mixture.numerics import slice_draw

# pairs with less mixture weight between them share no record worth an evaluation
SMALLEST_PAIR = -8.0


class LabelFreeMoves:
    r"""Moves on the parameters alone, with the target prior × :math:`\prod_i f_i^{\alpha_i}`.

    Drawing labels, and parameters given labels, moves mixture weights by about
    :math:`1/\sqrt{n}` a sweep, and a component empties record by record. Moves that see the
    mixture whole are not held back by labels. They leave the pseudo posterior as it is whatever
    the weights, and are made while no labels are held: those are drawn afresh behind them.

    A class for the sampler in :mod:`ppm.synthesizers.mixture.sampler` to build on, whose state
    they read and change.
    """

    def share_mixture_weight(self):
        r"""Slice sampling of how two components share their mixture weight, in a random pairing.

        With the sum of both held, their prior is that of a Beta(a/K, a/K) share u. The variable is
        log(u / (1 - u)), hence :math:`u^{a/K} (1 - u)^{a/K}` with its Jacobian.
        """
        rng, prior_count = self.rng, self.concentration / self.K
        order = rng.permutation(self.K)
        for pair in order[: 2 * (self.K // 2)].reshape(-1, 2):
            total = np.logaddexp(*self.log_pi[pair])
            # this depends on nothing that the move changes, so leaving pairs out is allowed
            if total < SMALLEST_PAIR:
                continue
            terms = self.passes.pair_terms(pair, total, *self.terms())

            def log_density(x, terms=terms):
                # the interval bounds the steps outwards where the prior is all there is
                if abs(x) > 40.0:
                    return -np.inf
                return self.passes.share_log_density(x, prior_count, self.alpha, *terms)

            x = self.log_pi[pair[0]] - self.log_pi[pair[1]]
            if not np.isfinite(log_density(x)):
                continue
            # hardly any records: the prior alone, which is wide
            wide = np.exp(total) * self.alpha.sum() < 5.0
            x = slice_draw(x, log_density, rng, width=20.0 if wide else 2.0)
            self.log_pi[pair] = total - np.logaddexp(0.0, [-x, x])
            self.update_terms(pair)
