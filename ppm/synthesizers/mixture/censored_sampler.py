"""The finite mixture's sampler where every record's term is kept between two public limits.

The target is prior × exp Σ h(α_i log f_i). With the labels drawn as always, the joint target is
prior × Π exp(h(α_i log f_i) - log f_i) π_{z_i} N_{z_i}. A proposal in which record i counts a_i
times, whatever a_i is, is accepted with log ratio

    Σ_i [h(α_i log f_i') - h(α_i log f_i) - (log f_i' - log f_i)]
    + Σ_{z_i = k} (1 - a_i) (log N_k' - log N_k).

At a record's limits its likelihood is flat and says nothing, and the best a_i is small; between
them it is near α_i. So a_i is the mean slope of the record's term over warm-up, and stays fixed
after it: the kept draws come from one Markov chain with the target above.
"""

import numpy as np

from ppm.synthesizers.mixture import record_passes
from ppm.synthesizers.mixture.numerics import LOG_2PI
from ppm.synthesizers.mixture.sampler import _Sampler

# a running mean of slopes forgets where warm-up began
_FORGET = 0.02


class CensoredSampler(_Sampler):
    """State of one chain of the censored pseudo posterior, and the moves that change it.

    ``weights`` are those of the target; ``alpha``, how often a record counts in a proposal, starts
    there and is found during warm-up. ``censor`` is the :class:`ppm.Censoring`.
    """

    def __init__(self, *arguments, censor, **settings):
        super().__init__(*arguments, **settings)
        self.weights, self.censor = self.alpha, censor
        self.compiled = None
        if self.passes is not record_passes:
            # compiled at this import, as the other passes were
            from ppm.synthesizers.mixture import compiled_terms

            self.compiled = compiled_terms
        # at weights of 1, too
        self.corrected = True
        self.adapted = 0

    def total(self):
        """Sum of the records' terms."""
        return float(self.censor.terms(self.log_f, self.weights).sum())

    # ---- what the target changes ----------------------------------------------------------

    def excess_change(self, new_log_f):
        """Change of Σ [log f_i - h(α_i log f_i)]."""
        new, old = new_log_f, self.log_f
        if self.compiled is not None:
            censor = self.censor
            return self.compiled.excess_change(
                new, old, self.weights, censor.low, censor.high, censor.smooth
            )
        terms = self.censor.terms
        return (new - old).sum() - (terms(new, self.weights) - terms(old, self.weights)).sum()

    def share_target(self, pair, total):
        *terms, offset = self.passes.pair_terms(pair, total, *self.terms())
        rest, first, second = terms
        prior_count = self.concentration / self.K

        def log_density(x):
            log_shares = -np.logaddexp(0.0, [-x, x])
            shares = np.exp(log_shares)
            log_f = np.log(rest + shares[0] * first + shares[1] * second) + offset
            return prior_count * log_shares.sum() + self.censor.terms(log_f, self.weights).sum()

        return log_density

    def move_component(self, k, steps, moved, members):
        """Metropolis steps of the coefficients, then of the scale, one after the other."""
        residual, sigma = self.y - moved[-1], self.sigma[k]
        rest = self.passes.rest_of(k, *self.terms())
        rest_members = self.rest_members(members)
        accepted = np.zeros(len(steps), dtype=bool)
        thresholds = self.thresholds(len(steps))
        for step, shift in enumerate(moved[:-1]):
            proposal = residual - shift
            accepted[step] = self._try(
                k, proposal, sigma, residual, sigma, rest, rest_members, thresholds[step]
            )
            if accepted[step]:
                residual = proposal
        self.beta[k] += accepted @ steps
        new = self.propose_sigma(k, residual[members], self.alpha[members])
        scale_accepted = self._try(
            k, residual, new, residual, sigma, rest, rest_members, self.thresholds(1)[0]
        )
        if scale_accepted:
            self.sigma[k] = new
        density = self._density(residual, self.sigma[k])
        self.log_density[k] = density
        self.scaled[k] = np.exp(self.log_pi[k] + density - self.top)
        return accepted, scale_accepted

    @staticmethod
    def _density(residual, sigma):
        return -0.5 * (residual / sigma) ** 2 - np.log(sigma) - 0.5 * LOG_2PI

    def _try(self, k, new, new_sigma, old, old_sigma, rest, rest_members, threshold):
        """Decide on residuals and a scale of component k; keeps log f if accepted."""
        log_f, members = None, 0.0
        if self.compiled is not None:
            log_f = np.empty(self.y.size)
            members, wrong = self.compiled.propose(
                self.log_pi[k], new, new_sigma, old, old_sigma, rest, rest_members, self.top, log_f
            )
            if wrong:
                log_f = None
        if log_f is None:
            density = self._density(new, new_sigma)
            members = rest_members @ (density - self._density(old, old_sigma))
            # the plain passes have it in this form already
            others = rest
            if self.compiled is not None:
                others = record_passes.rest_of(k, *self.terms())
            log_f = record_passes.log_add_exp(others, self.log_pi[k] + density)
        # a ratio that is not a number is a rejection
        if not members - self.excess_change(log_f) >= threshold:
            return False
        self.log_f = log_f
        return True

    # ---- adaptation -----------------------------------------------------------------------

    def adapt_blocks(self, sweep):
        """The number of blocks, and how often each record counts in a proposal."""
        super().adapt_blocks(sweep)
        self.adapted += 1
        rate = max(_FORGET, 1.0 / self.adapted)
        slope = self.weights * self.censor.slope(self.weights * self.log_f)
        self.alpha = self.alpha + rate * (slope - self.alpha)
        self.rest_alpha = 1.0 - self.alpha


