"""Metropolis within Gibbs for the finite mixture of regressions: the state of a chain, its moves.

The notes of :class:`ppm.FiniteMixture` give the target and say why the draws are exact.
"""

from math import exp, lgamma

import numpy as np
from scipy.linalg import lapack

from ppm.models.mixture import numerics, passes
from ppm.models.mixture.numerics import log_gamma_draws, slice_draw

# pairs with a smaller log mixture weight are not worth an evaluation
SMALLEST_PAIR = -8.0


class Sampler:
    """State of one chain, and the moves that change it.

    Arrays by component and record are (components, records): a component's row is contiguous.
    Without ``corrected`` the Metropolis correction is omitted, which is exact only at weights of 1.
    """

    def __init__(self, response, design, weights, components, prior, rng):
        self.y, self.design, self.alpha = response, design, weights
        self.one_minus_alpha, self.X = 1.0 - weights, design.X
        self.K, self.R = components, self.X.shape[1]
        self.prior, self.rng = prior, rng
        self.corrected = bool(np.any(self.one_minus_alpha))
        # into how many blocks the coefficients of a component are split
        self.log_blocks = np.log(min(4, self.R))
        self.accepted = self.proposed = 0
        self.moments = None

    def start(self, start):
        """Begin at an earlier draw, or at random labels of all components."""
        prior = self.prior
        self.residual_aux = np.full(self.K, prior.residual_scale**2)
        self.coefficient_aux = prior.coefficient_scale**2
        self.labels = None
        if start is not None:
            self.take_over(start)
            self.update_densities()
            return
        rng, root = self.rng, np.sqrt(self.alpha)
        # one regression for all records, with a little shrinkage in case columns are collinear
        gram = (self.X.T * self.alpha) @ self.X
        ridge = 1e-6 * (np.trace(gram) / self.R + 1.0) * np.eye(self.R)
        common = np.linalg.solve(gram + ridge, self.X.T @ (self.alpha * self.y))
        residual = self.y - self.X @ common
        spread = np.sqrt(
            (root @ (root * residual**2) + 1e-8) / (self.alpha.sum() + 1e-8)
        )
        # labels by rank of the residual, with different noise in each chain; of all components,
        # because this sampler empties them readily and fills them rarely
        noisy = residual + spread * rng.uniform(0.1, 1.0) * rng.standard_normal(
            residual.size
        )
        rank = np.argsort(np.argsort(noisy))
        self.labels = rank * self.K // max(residual.size, 1)
        self.beta = np.tile(common, (self.K, 1))
        self.sigma = np.full(self.K, spread)
        self.concentration = 1.0
        counts = np.bincount(self.labels, minlength=self.K) + 1.0
        self.log_pi = np.log(counts / counts.sum())
        self.update_densities()

    def take_over(self, start):
        self.beta, self.sigma = start["beta"].copy(), start["sigma"].copy()
        with np.errstate(divide="ignore"):
            # a stored weight may have underflowed to 0
            self.log_pi = np.maximum(np.log(start["pi"]), -700.0)
        self.concentration = float(start["concentration"])

    def update_densities(self):
        """Recompute log N_k and log f of every record from the parameters."""
        self.log_density = self.log_densities(self.beta, self.sigma)
        self.rescale()

    def log_densities(self, beta, sigma):
        """Normal log-density of every record under components with these parameters."""
        return passes.log_densities(self.y, self.design.times(beta), sigma)

    def rescale(self):
        """Recompute log f, and the terms of f scaled by the largest, from log N_k."""
        self.offset, self.scaled, self.log_f = passes.rescale(
            self.log_pi, self.log_density
        )

    @property
    def state(self):
        """What every record's f_i is the sum of, as the passes take it."""
        return passes.MixtureState(
            self.log_pi, self.log_density, self.scaled, self.offset
        )

    def thresholds(self, count):
        """Thresholds that log ratios must reach in Metropolis decisions."""
        return -self.rng.standard_exponential(count)

    def try_terms(self, rows, log_shares, densities=None, labels_part=0.0):
        """Accept or reject new mixture weights of components, and new log N_k if given.

        ``labels_part`` is the part of the log ratio that comes from the labels' own terms. If
        accepted, updates all arrays by record, but not ``log_pi``.
        """
        new = self.log_density[rows] if densities is None else densities
        log_f, scaled = passes.replace_terms(self.state, rows, log_shares, new)
        # the proposal targets Π f_i: divide by Π f_i^(1 - α_i)
        log_ratio = labels_part - self.one_minus_alpha @ (log_f - self.log_f)
        # NaN is a rejection
        if not log_ratio >= self.thresholds(1)[0]:
            return False
        self.scaled[rows], self.log_f = scaled, log_f
        if densities is not None:
            self.log_density[rows] = densities
        return True

    def sweep(self):
        """One pass over all blocks."""
        self.accepted = self.proposed = 0
        # overflow and log(0) may occur; the passes repair them
        with np.errstate(
            over="ignore", divide="ignore", invalid="ignore", under="ignore"
        ):
            if self.labels is None:
                if self.corrected:
                    # without correction the last sweep ended with this
                    self.rescale()
                self.share_mixture_weight()
            self.draw_labels()
            self.draw_coefficient_covariance()
            for k in range(self.K):
                members = self.members[k]
                if members.size:
                    self.draw_component(k, members)
            self.draw_residual_aux()
            self.draw_concentration()
            if self.corrected:
                self.draw_mixture_weight_pairs()
            else:
                log_gamma = log_gamma_draws(
                    self.concentration / self.K + self.weight, self.rng
                )
                self.log_pi = log_gamma - numerics.log_sum_exp(log_gamma)
                self.update_densities()

    # ---- moves with the labels left out ---------------------------------------------------

    # Given labels, mixture weights move by about 1/√n per sweep, and a component empties record by
    # record. A move whose target is prior × Π f_i^α_i leaves the pseudo posterior invariant
    # whatever the weights, and takes place before the labels are drawn.

    def share_mixture_weight(self):
        """Slice sampling of how two components share their mixture weight, in a random pairing.

        With the sum of both held, their prior is that of a Beta(a/K, a/K) share u. The variable is
        log(u / (1 - u)), hence u^(a/K) (1 - u)^(a/K) with its Jacobian.
        """
        rng, prior_count = self.rng, self.concentration / self.K
        order = rng.permutation(self.K)
        for pair in order[: 2 * (self.K // 2)].reshape(-1, 2):
            total = np.logaddexp(*self.log_pi[pair])
            # the move does not change this total, so leaving pairs out is allowed
            if total < SMALLEST_PAIR:
                continue
            terms = passes.pair_terms(self.state, pair, total)

            def log_density(x, terms=terms):
                # bounds the steps outwards where only the prior decides
                if abs(x) > 40.0:
                    return -np.inf
                return passes.share_log_density(x, prior_count, self.alpha, *terms)

            x = self.log_pi[pair[0]] - self.log_pi[pair[1]]
            if not np.isfinite(log_density(x)):
                continue
            # with hardly any records the prior decides, which is wide
            wide = np.exp(total) * self.alpha.sum() < 5.0
            x = slice_draw(x, log_density, rng, width=20.0 if wide else 2.0)
            self.log_pi[pair] = total - np.logaddexp(0.0, [-x, x])
            self.log_f, self.scaled[pair] = passes.replace_terms(
                self.state, pair, self.log_pi[pair], self.log_density[pair]
            )

    # ---- moves given the labels -----------------------------------------------------------

    def draw_labels(self):
        """Labels given the parameters: ordinary responsibilities, whatever the weights."""
        if self.labels is None:
            uniforms = self.rng.random(self.y.size)
            self.labels = passes.draw_labels(self.scaled, uniforms)
        labels, self.labels = self.labels, None
        # NumPy sorts two-byte integers in linear time
        order = np.argsort(labels.astype(np.uint16), kind="stable")
        self.count = np.bincount(labels, minlength=self.K)
        self.weight = np.bincount(labels, self.alpha, minlength=self.K)
        self.members = np.split(order, np.cumsum(self.count)[:-1])

    def draw_coefficient_covariance(self):
        """Covariance of the coefficients, given all of them, where it is conjugate.

        Empty components, which follow the prior, slow it down. So it is also drawn given the
        occupied components alone, together with the empty ones.
        """
        empty = np.flatnonzero(self.count == 0)
        if self.corrected or not empty.size:
            self.covariance = self.propose_covariance(np.arange(self.K))
        if empty.size:
            self.draw_empty_components(empty)
        df, self.precision = self.prior.coefficient_df, self.covariance[1]
        rate = df * np.diag(self.precision) + 1.0 / self.prior.coefficient_scale**2
        self.coefficient_aux = numerics.inverse_gamma(
            0.5 * (df + self.R), rate, self.rng
        )

    def propose_covariance(self, components):
        """C and the inverse of V = C C', drawn given the coefficients of these components."""
        rng, R, df = self.rng, self.R, self.prior.coefficient_df
        beta = self.beta[components]
        scale = beta.T @ beta
        scale.flat[:: R + 1] += 2.0 * df / self.coefficient_aux
        # Bartlett: the precision is Wishart, L^-T A A' L^-1
        lower = cholesky(scale)
        bartlett = np.tril(rng.standard_normal((R, R)), -1)
        degrees = df + R - 1.0 + len(components) - np.arange(R)
        bartlett.flat[:: R + 1] = np.sqrt(rng.chisquare(degrees))
        root = solve(lower, bartlett, transposed=True)
        return solve(bartlett, lower.T).T, root @ root.T

    def draw_empty_components(self, empty):
        """Covariance given the occupied components, then the empty ones from their prior."""
        prior, rng = self.prior, self.rng
        covariance = self.propose_covariance(np.flatnonzero(self.count))
        beta = rng.standard_normal((empty.size, self.R)) @ covariance[0].T
        aux = numerics.inverse_gamma(
            0.5, np.full(empty.size, prior.residual_scale**-2.0), rng
        )
        df = prior.residual_df
        sigma = np.sqrt(numerics.inverse_gamma(0.5 * df, df / aux, rng))
        if self.corrected:
            log_density = self.log_densities(beta, sigma)
            if not self.try_terms(empty, self.log_pi[empty], log_density):
                return
        self.covariance = covariance
        self.beta[empty], self.sigma[empty], self.residual_aux[empty] = beta, sigma, aux

    def draw_component(self, k, members):
        """Coefficients, then scale, of a component with members."""
        rng, variance = self.rng, self.sigma[k] ** 2
        precision, half = self.own_moments(members)
        lower = cholesky(precision / variance + self.precision)
        half = solve(lower, half / variance)
        # β = L^-T (half + ε): ε is standard normal given the rest, so blocks of it are independent
        fresh = rng.standard_normal(self.R)
        if not self.corrected:
            self.beta[k] = solve(lower, half + fresh, transposed=True)
            residual = self.y[members] - self.X.take(members, axis=0) @ self.beta[k]
            self.sigma[k] = self.propose_sigma(k, residual, self.alpha[members])
            return
        blocks = int(np.clip(round(np.exp(self.log_blocks)), 1, self.R))
        steps = np.zeros((blocks, self.R))
        steps[np.arange(self.R) % blocks, rng.permutation(self.R)] = 1.0
        steps *= fresh - (lower.T @ self.beta[k] - half)
        steps = np.ascontiguousarray(solve(lower, steps.T, transposed=True).T)
        moved = self.design.times(np.vstack([steps, self.beta[k]]))
        self.move_component(k, steps, moved, members)

    def own_moments(self, members):
        """X'WX and X'Wy of a component's members; a single component has the same ones always."""
        if self.moments is None or self.K > 1:
            self.moments = self.design.moments(
                members, self.alpha[members], self.y[members]
            )
        return self.moments

    def move_component(self, k, steps, moved, members):
        """Metropolis steps of the coefficients, one after the other, then one of the scale."""
        residual, sigma = self.y - moved[-1], self.sigma[k]
        rest, density_weights = passes.rest_of(k, self.scaled), np.zeros(self.y.size)
        # 1 - α of the members, 0 for all others
        density_weights[members] = self.one_minus_alpha[members]

        def at(residual, sigma):
            """Log of the target over that of the proposals, and log f."""
            return passes.move_component(
                self.state,
                k,
                residual,
                sigma,
                rest,
                density_weights,
                self.one_minus_alpha,
            )

        present = (
            density_weights @ self.log_density[k] - self.one_minus_alpha @ self.log_f
        )
        for step, by, threshold in zip(
            steps, moved, self.thresholds(len(steps)), strict=False
        ):
            proposal = residual - by
            proposed, log_f = at(proposal, sigma)
            # NaN is a rejection
            if proposed - present >= threshold:
                present, self.log_f, residual = proposed, log_f, proposal
                self.beta[k] += step
                self.accepted += 1
        sigma = self.propose_sigma(k, residual[members], self.alpha[members])
        proposed, log_f = at(residual, sigma)
        if proposed - present >= self.thresholds(1)[0]:
            self.sigma[k], self.log_f = sigma, log_f
        self.proposed += len(steps)
        passes.set_component(
            self.log_pi[k],
            self.sigma[k],
            residual,
            self.offset,
            self.log_density[k],
            self.scaled[k],
        )

    def propose_sigma(self, k, residual, alpha):
        df = self.prior.residual_df
        rate = df / self.residual_aux[k] + 0.5 * (alpha @ residual**2)
        return np.sqrt(numerics.inverse_gamma(0.5 * (df + alpha.sum()), rate, self.rng))

    def draw_residual_aux(self):
        df = self.prior.residual_df
        rate = df / self.sigma**2 + 1.0 / self.prior.residual_scale**2
        self.residual_aux = numerics.inverse_gamma(0.5 * (df + 1.0), rate, self.rng)

    def draw_mixture_weight_pairs(self):
        """Redistribute the mixture weight of pairs of components, in a random pairing."""
        rng = self.rng
        order = rng.permutation(self.K)
        # Σ (1 - α_i) over the members of each component
        lost_count = self.count - self.weight
        for pair in order[: 2 * (self.K // 2)].reshape(-1, 2):
            log_gamma = log_gamma_draws(
                self.concentration / self.K + self.weight[pair], rng
            )
            share = log_gamma - np.logaddexp(*log_gamma)
            log_pi = share + np.logaddexp(*self.log_pi[pair])
            change = log_pi - self.log_pi[pair]
            if self.try_terms(pair, log_pi, labels_part=lost_count[pair] @ change):
                self.log_pi[pair] = log_pi

    def draw_concentration(self):
        """Concentration a, together with how the empty components share their mixture weight.

        Given the tiny mixture weights of empty components, a would hardly move. So log a is slice
        sampled given the weights of the occupied components and the total of the empty ones,
        together with the shares of that total.
        """
        prior, rng, K = self.prior, self.rng, self.K
        empty = np.flatnonzero(self.count == 0)
        log_pi = self.log_pi[self.count > 0].sum()
        if empty.size:
            total = numerics.log_sum_exp(self.log_pi[empty])
            log_pi += empty.size * total

        def log_density(x):
            # beyond this even logarithms of mixture weights overflow
            if abs(x) > 600.0:
                return -np.inf
            a = exp(x)
            normaliser = lgamma(a) - (K - empty.size) * lgamma(a / K)
            if empty.size:
                normaliser -= lgamma(empty.size * a / K)
            gamma = prior.concentration_shape * x - prior.concentration_rate * a
            return normaliser + (a / K) * log_pi + gamma

        concentration = float(
            np.exp(slice_draw(np.log(self.concentration), log_density, rng))
        )
        if empty.size > 1:
            log_gamma = log_gamma_draws(np.full(empty.size, concentration / K), rng)
            shares = total + log_gamma - numerics.log_sum_exp(log_gamma)
            if self.corrected and not self.try_terms(empty, shares):
                return
            self.log_pi[empty] = shares
        self.concentration = concentration

    def adapt(self, sweep):
        """More blocks when too few proposals are accepted, fewer when too many."""
        if self.proposed:
            rate = self.accepted / self.proposed
            self.log_blocks += 2.0 * (0.5 - rate) / np.sqrt(sweep + 1.0)
            self.log_blocks = np.clip(self.log_blocks, 0.0, np.log(self.R))

    def draw_coefficient_scale(self):
        """The model's σ_β (predictors,), of the covariance that the sweep drew."""
        return np.sqrt((self.covariance[0] ** 2).sum(axis=1))


# LAPACK directly: at this size SciPy's checks of arguments take longer than the computation


def cholesky(matrix):
    """Lower triangular L with L L' = matrix, of which only the lower triangle is read."""
    lower, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        raise np.linalg.LinAlgError("matrix is not positive definite")
    return lower


def solve(lower, right, transposed=False):
    """L^-1 or L^-T times one or several columns."""
    solution, failed = lapack.dtrtrs(lower, right, lower=1, trans=int(transposed))
    if failed:
        raise np.linalg.LinAlgError("matrix is singular")
    return solution
