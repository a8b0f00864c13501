"""The finite mixture's sampler where every record's term is kept between two public limits.

The target is prior × exp Σ h(α_i log f_i), which follows the prior wherever many terms are clipped.
Proposals that follow the residuals do not go there: such a chain misses a part of the posterior,
and R-hat does not show it. So all moves are slice sampling of the target itself, without labels:

- the scale of a component, on the log scale, with brackets of random width;
- the coefficients of a component on an ellipse through a draw of their prior (Murray, Adams and
  MacKay, 2010), and on one through a draw of a normal approximation found in warm-up, which
  decides how fast the chain is, not its limit;
- how two components share their mixture weight.

The covariance V of the coefficients is integrated out. Given the auxiliary scales and the
coefficients of the other components, those of one component then have a multivariate t
distribution: a normal one with a random factor of its variance, drawn anew before each move.
"""

import contextlib
import math

import numpy as np

from ppm.mixture import numerics, passes
from ppm.mixture.sampler import Sampler, cholesky, solve

# sweeps between two approximations, and the smallest weight of a sweep in their running means
_EVERY, _FORGET = 25, 0.02
# squares of scales overflow beyond this logarithm
_FARTHEST = 300.0


class CensoredSampler(Sampler):
    """State of one chain of the censored pseudo posterior, and the moves that change it."""

    def __init__(self, *arguments, terms):
        super().__init__(*arguments)
        self.censor = terms.limits
        self.levels = (
            np.zeros(self.y.size) if terms.levels is None else terms.levels.copy()
        )
        self.approximations = [None] * self.K
        self.adapted = 0
        self.slopes, self.log_scales = np.zeros((self.K, self.y.size)), np.zeros(self.K)

    def start(self, start):
        """Begin at an earlier draw, or at one from the prior."""
        prior, rng = self.prior, self.rng
        self.coefficient_aux = numerics.inverse_gamma(
            0.5, prior.coefficient_scale**-2.0, rng
        )
        if start is None:
            self.beta = np.zeros((0, self.R))
            root = self.propose_covariance(np.arange(0))[0]
            self.beta = rng.standard_normal((self.K, self.R)) @ root.T
            self.sigma = prior.residual_scale * np.abs(
                rng.standard_t(prior.residual_df, self.K)
            )
            # a draw of a small shape may underflow
            a = max(
                rng.gamma(prior.concentration_shape, 1.0 / prior.concentration_rate),
                1e-260,
            )
            self.concentration = a
            log_gamma = numerics.log_gamma_draws(np.full(self.K, a / self.K), rng)
            self.log_pi = log_gamma - numerics.log_sum_exp(log_gamma)
        else:
            self.take_over(start)
        self.residuals = self.y - self.beta @ self.design.XT
        self.log_density = self.log_densities(self.beta, self.sigma)
        self.log_f = self.log_f_without()

    def log_f_without(self, *left_out):
        """Log f without the terms of some components."""
        keep = np.delete(np.arange(self.K), left_out)
        joint = self.log_pi[keep, None] + self.log_density[keep]
        return self.with_terms(np.full(self.y.size, passes.NOTHING), joint)[0]

    def with_terms(self, rest, joint):
        """Log f, from that of the others and log terms of some; and the sum of the terms."""
        censor = self.censor
        return passes.limited_sum(
            rest, joint, self.alpha, self.levels, censor.low, censor.high, censor.smooth
        )

    def at_component(self, k, rest, squares, sigma):
        """Log-density of component k at squared residuals and scale; log f, and the terms' sum."""
        factor, constant = passes.normal_parts(sigma)
        density = factor * squares + constant
        return density, *self.with_terms(rest, (density + self.log_pi[k])[None])

    def total(self):
        """Sum of the records' terms."""
        return self.with_terms(self.log_f, self.log_density[:0])[1]

    def sweep(self):
        """One pass over all moves."""
        # a scale near 0 gives log f of -inf, where terms are at the lower limit
        with np.errstate(
            over="ignore", divide="ignore", invalid="ignore", under="ignore"
        ):
            self.draw_coefficient_aux()
            for k in range(self.K):
                rest = self.log_f_without(k)
                # skipped if a matrix is singular, which does not depend on what these moves change
                with contextlib.suppress(np.linalg.LinAlgError):
                    self.draw_coefficients(k, rest)
                self.draw_scale(k, rest)
            self.draw_shares()
            # without labels no component is empty
            self.count = np.ones(self.K)
            self.draw_concentration()
            self.rescale()
            labels = passes.draw_labels(self.scaled, self.rng.random(self.y.size))
            self.count = np.bincount(labels, minlength=self.K)

    def scales(self):
        """Diagonal of D = 2ν diag(1/aux)."""
        return 2.0 * self.prior.coefficient_df / self.coefficient_aux

    def draw_coefficient_aux(self):
        """Auxiliary scale of each coefficient, given the coefficients B alone.

        Their density is proportional to |D|^(-K/2) |I + B D^-1 B'|^(-(ν + R - 1 + K)/2).
        """
        prior, rng, K = self.prior, self.rng, self.K
        df, power = (
            prior.coefficient_df,
            0.5 * (prior.coefficient_df + self.R - 1.0 + K),
        )
        identity = np.eye(K)
        for r in rng.permutation(self.R):
            column, rate = self.beta[:, r], prior.coefficient_scale[r] ** -2.0
            others = 1.0 / self.scales()
            others[r] = 0.0
            inner = identity + (self.beta * others) @ self.beta.T
            # of the determinant only the factor 1 + size/D depends on this scale
            try:
                half = solve(cholesky(inner), column)
            except np.linalg.LinAlgError:
                continue  # which does not depend on what this move changes

            # numbers of Python, whose arithmetic is several times as fast
            def log_density(x, size=float(half @ half) / (2.0 * df), rate=float(rate)):
                if abs(x) > _FARTHEST:
                    return -math.inf
                aux = math.exp(x)
                return 0.5 * (K - 1) * x - rate / aux - power * math.log1p(size * aux)

            x = numerics.slice_draw(
                math.log(self.coefficient_aux[r]), log_density, rng, width=3.0
            )
            self.coefficient_aux[r] = math.exp(x)

    def draw_coefficients(self, k, rest):
        """Two slices on ellipses: from the prior, and from the normal approximation."""
        rng, R, df = self.rng, self.R, self.prior.coefficient_df + self.K - 1.0
        others = np.delete(self.beta, k, axis=0)
        scale = others.T @ others
        scale.flat[:: R + 1] += self.scales()
        lower = cholesky(scale / df)

        def variance_factor():
            standard = solve(lower, self.beta[k])
            return numerics.inverse_gamma(
                0.5 * (df + R), 0.5 * (df + standard @ standard), rng
            )

        step = np.sqrt(variance_factor()) * (lower @ rng.standard_normal(R))
        self.slice_on_ellipse(k, rest, np.zeros(R), step, lambda beta: 0.0)
        if self.approximations[k] is None:
            return
        gram, moment = self.approximations[k]
        inverse = solve(lower, np.eye(R))
        root = cholesky(gram + inverse.T @ inverse / variance_factor())
        centre = solve(root, solve(root, moment), transposed=True)
        step = solve(root, rng.standard_normal(R), transposed=True)
        self.slice_on_ellipse(
            k, rest, centre, step, lambda beta: 0.5 * beta @ gram @ beta - moment @ beta
        )

    def slice_on_ellipse(self, k, rest, centre, step, left_out):
        """Move the coefficients on the ellipse through their present place and centre + step.

        ``left_out`` is the log of their prior over the normal density with this centre.
        """
        rng, sigma = self.rng, self.sigma[k]
        here, (at_centre, shift_step) = (
            self.beta[k] - centre,
            self.design.times([centre, step]),
        )
        residual = self.y - at_centre
        shift_here = residual - self.residuals[k]
        level = self.total() + left_out(self.beta[k]) - rng.standard_exponential()
        angle = rng.uniform(0.0, 2.0 * np.pi)
        low, high = angle - 2.0 * np.pi, angle
        # narrower only if rounding leaves nothing above the level
        while high - low > 1e-12:
            a, b = np.cos(angle), np.sin(angle)
            beta = centre + a * here + b * step
            moved = residual - (a * shift_here + b * shift_step)
            density, log_f, total = self.at_component(k, rest, moved * moved, sigma)
            if total + left_out(beta) >= level:
                self.beta[k], self.residuals[k], self.log_density[k] = (
                    beta,
                    moved,
                    density,
                )
                self.log_f = log_f
                return
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)

    def draw_scale(self, k, rest):
        """Slice of the log of a component's scale, whose prior is half-t."""
        prior = self.prior

        squares = self.residuals[k] ** 2

        def at(x):
            return self.at_component(k, rest, squares, math.exp(x))

        def log_density(x):
            if abs(x) > _FARTHEST:
                return -np.inf
            size = math.exp(2.0 * x) / (prior.residual_df * prior.residual_scale**2)
            return x - 0.5 * (prior.residual_df + 1.0) * math.log1p(size) + at(x)[2]

        width = math.exp(self.rng.uniform(-3.0, 2.3))
        x = numerics.slice_draw(math.log(self.sigma[k]), log_density, self.rng, width)
        self.sigma[k] = math.exp(x)
        self.log_density[k], self.log_f, _ = at(x)

    def draw_shares(self):
        """As ``share_mixture_weight``, of this target."""
        prior_count = self.concentration / self.K
        order = self.rng.permutation(self.K)
        for pair in order[: 2 * (self.K // 2)].reshape(-1, 2):
            total, rest = np.logaddexp(*self.log_pi[pair]), self.log_f_without(*pair)
            both = total + self.log_density[pair]

            def at(x, rest=rest, both=both):
                shares = -np.logaddexp(0.0, [-x, x])
                return shares, *self.with_terms(rest, both + shares[:, None])

            def log_density(x, at=at):
                shares, _, total = at(x)
                return prior_count * shares.sum() + total

            # with few records the prior decides, which may be very wide
            width = 10.0 + 1.0 / prior_count
            x = self.log_pi[pair[0]] - self.log_pi[pair[1]]
            shares, self.log_f, _ = at(
                numerics.slice_draw(x, log_density, self.rng, width)
            )
            self.log_pi[pair] = total + shares

    def adapt(self, sweep):
        """Update the normal approximations, which warm-up alone may do: weighted regressions."""
        self.adapted += 1
        rate = max(_FORGET, 1.0 / self.adapted)
        slope = self.alpha * self.censor.slope(self.alpha * (self.log_f - self.levels))
        shares = np.exp(self.log_pi[:, None] + self.log_density - self.log_f)
        self.slopes += rate * (slope * shares - self.slopes)
        self.log_scales += rate * (np.log(self.sigma) - self.log_scales)
        if self.adapted % _EVERY:
            return
        for k, counts in enumerate(
            self.slopes * np.exp(-2.0 * self.log_scales)[:, None]
        ):
            weighted = self.design.XT * counts
            self.approximations[k] = weighted @ self.X, weighted @ self.y

    def draw_coefficient_scale(self):
        """Draw the covariance, which the sweep integrates out, and return σ_β (predictors,)."""
        try:
            self.covariance = self.propose_covariance(np.arange(self.K))
        except np.linalg.LinAlgError:
            # the fit goes on: an error would reveal something of the records
            return np.full(self.R, np.nan)
        return super().draw_coefficient_scale()
