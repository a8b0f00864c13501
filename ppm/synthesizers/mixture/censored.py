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

import numpy as np

from ppm.synthesizers.mixture import passes
from ppm.synthesizers.mixture.numerics import (
    inverse_gamma,
    log_gamma_draws,
    log_normal,
    log_sum_exp,
    slice_draw,
)
from ppm.synthesizers.mixture.sampler import Sampler, cholesky, solve

# sweeps between two approximations, and the smallest weight of a sweep in their running means
_EVERY, _FORGET = 25, 0.02
# squares of scales overflow beyond this logarithm
_FARTHEST = 300.0


class CensoredSampler(Sampler):
    """State of one chain of the censored pseudo posterior, and the moves that change it."""

    def __init__(self, *arguments, censor, **settings):
        super().__init__(*arguments, **settings)
        self.censor = censor
        # at weights of 1, too
        self.corrected = True
        self.approximations = [None] * self.K
        self.adapted = 0
        self.slopes, self.log_scales = np.zeros((self.K, self.y.size)), np.zeros(self.K)

    def start(self, start, groups=None):
        """Begin at an earlier draw, or at one from the prior; ``groups`` has no effect."""
        prior, rng = self.prior, self.rng
        self.coefficient_aux = inverse_gamma(0.5, prior.coefficient_scale**-2.0, rng)
        if start is None:
            self.beta = np.zeros((0, self.R))
            root = self.propose_covariance(np.arange(0))[0]
            self.beta = rng.standard_normal((self.K, self.R)) @ root.T
            self.sigma = prior.residual_scale * np.abs(rng.standard_t(prior.residual_df, self.K))
            a = rng.gamma(prior.concentration_shape, 1.0 / prior.concentration_rate)
            self.concentration = a
            log_gamma = log_gamma_draws(np.full(self.K, a / self.K), rng)
            self.log_pi = log_gamma - log_sum_exp(log_gamma)
        else:
            self.take_over(start)
        self.residuals = self.y - self.beta @ self.design.XT
        with np.errstate(over="ignore"):
            self.log_density = np.array([*map(log_normal, self.residuals, self.sigma)])
        self.log_f = self.log_f_with(None, self.log_pi[:, None] + self.log_density)

    def log_f_with(self, rest, joint):
        """Log f from ``rest``, that of the others or None, and the log terms of some components."""
        if rest is not None:
            joint = np.vstack([rest, joint])
        return joint[0] if len(joint) == 1 else log_sum_exp(joint)

    def log_f_without(self, *left_out):
        """Log f without the terms of some components; None if there are no others."""
        keep = np.delete(np.arange(self.K), left_out)
        if not keep.size:
            return None
        return self.log_f_with(None, self.log_pi[keep, None] + self.log_density[keep])

    def total(self, log_f=None):
        """Sum of the records' terms, now or at other log f."""
        log_f = self.log_f if log_f is None else log_f
        return float(self.censor.term(self.alpha * log_f).sum())

    def sweep(self):
        """One pass over all moves."""
        # a scale near 0 gives log f of -inf, where terms are at the lower limit
        with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
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
            joint = self.log_pi[:, None] + self.log_density
            scaled = np.exp(joint - joint.max(axis=0))
            labels = passes.draw_labels(scaled, self.rng.random(self.y.size))
            self.count = np.bincount(labels, minlength=self.K)

    def scales(self):
        """Diagonal of D = 2ν diag(1/aux)."""
        return 2.0 * self.prior.coefficient_df / self.coefficient_aux

    def draw_coefficient_aux(self):
        """Auxiliary scale of each coefficient, given the coefficients B alone.

        Their density is proportional to |D|^(-K/2) |I + B D^-1 B'|^(-(ν + R - 1 + K)/2).
        """
        prior, rng, K = self.prior, self.rng, self.K
        df, power = prior.coefficient_df, 0.5 * (prior.coefficient_df + self.R - 1.0 + K)
        for r in rng.permutation(self.R):
            column, rate = self.beta[:, r], prior.coefficient_scale[r] ** -2.0
            others = 1.0 / self.scales()
            others[r] = 0.0
            inner = np.eye(K) + (self.beta * others) @ self.beta.T
            # of the determinant only the factor 1 + size/D depends on this scale
            size = column @ np.linalg.solve(inner, column)

            def log_density(x, size=size, rate=rate):
                if abs(x) > _FARTHEST:
                    return -np.inf
                aux = np.exp(x)
                prior_part = -0.5 * x - rate / aux
                return prior_part + 0.5 * K * x - power * np.log1p(size * aux / (2.0 * df))

            x = slice_draw(np.log(self.coefficient_aux[r]), log_density, rng, width=3.0)
            self.coefficient_aux[r] = np.exp(x)

    def draw_coefficients(self, k, rest):
        """Two slices on ellipses: from the prior, and from the normal approximation."""
        rng, R, df = self.rng, self.R, self.prior.coefficient_df + self.K - 1.0
        others = np.delete(self.beta, k, axis=0)
        scale = others.T @ others
        scale.flat[:: R + 1] += self.scales()
        lower = cholesky(scale / df)

        def variance_factor():
            standard = solve(lower, self.beta[k])
            return inverse_gamma(0.5 * (df + R), 0.5 * (df + standard @ standard), rng)

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
        here, residual = self.beta[k] - centre, self.y - centre @ self.design.XT
        shift_here, shift_step = residual - self.residuals[k], step @ self.design.XT
        level = self.total() + left_out(self.beta[k]) - rng.standard_exponential()
        angle = rng.uniform(0.0, 2.0 * np.pi)
        low, high = angle - 2.0 * np.pi, angle
        # narrower only if rounding leaves nothing above the level
        while high - low > 1e-12:
            a, b = np.cos(angle), np.sin(angle)
            beta = centre + a * here + b * step
            moved = residual - (a * shift_here + b * shift_step)
            density = log_normal(moved, sigma)
            log_f = self.log_f_with(rest, (self.log_pi[k] + density)[None])
            if self.total(log_f) + left_out(beta) >= level:
                self.beta[k], self.residuals[k], self.log_density[k] = beta, moved, density
                self.log_f = log_f
                return
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)

    def draw_scale(self, k, rest):
        """Slice of the log of a component's scale, whose prior is half-t."""
        prior = self.prior

        def at(x):
            density = log_normal(self.residuals[k], np.exp(x))
            return density, self.log_f_with(rest, (self.log_pi[k] + density)[None])

        def log_density(x):
            if abs(x) > _FARTHEST:
                return -np.inf
            size = np.exp(2.0 * x) / (prior.residual_df * prior.residual_scale**2)
            return x - 0.5 * (prior.residual_df + 1.0) * np.log1p(size) + self.total(at(x)[1])

        width = np.exp(self.rng.uniform(-3.0, 2.3))
        x = slice_draw(np.log(self.sigma[k]), log_density, self.rng, width)
        self.sigma[k] = np.exp(x)
        self.log_density[k], self.log_f = at(x)

    def draw_shares(self):
        """As ``share_mixture_weight``, of this target."""
        prior_count = self.concentration / self.K
        order = self.rng.permutation(self.K)
        for pair in order[: 2 * (self.K // 2)].reshape(-1, 2):
            total, rest = np.logaddexp(*self.log_pi[pair]), self.log_f_without(*pair)
            both = total + self.log_density[pair]

            def at(x, rest=rest, both=both):
                shares = -np.logaddexp(0.0, [-x, x])
                return shares, self.log_f_with(rest, both + shares[:, None])

            def log_density(x, at=at):
                shares, log_f = at(x)
                return prior_count * shares.sum() + self.total(log_f)

            # with few records the prior decides, which may be very wide
            width = 10.0 + 1.0 / prior_count
            x = self.log_pi[pair[0]] - self.log_pi[pair[1]]
            shares, self.log_f = at(slice_draw(x, log_density, self.rng, width))
            self.log_pi[pair] = total + shares

    def adapt(self, sweep):
        """Update the normal approximations, which warm-up alone may do: weighted regressions."""
        self.adapted += 1
        rate = max(_FORGET, 1.0 / self.adapted)
        slope = self.alpha * self.censor.slope(self.alpha * self.log_f)
        with np.errstate(invalid="ignore", under="ignore"):
            shares = np.nan_to_num(np.exp(self.log_pi[:, None] + self.log_density - self.log_f))
        self.slopes += rate * (slope * shares - self.slopes)
        self.log_scales += rate * (np.log(self.sigma) - self.log_scales)
        if self.adapted % _EVERY:
            return
        for k, counts in enumerate(self.slopes * np.exp(-2.0 * self.log_scales)[:, None]):
            weighted = self.design.XT * counts
            self.approximations[k] = weighted @ self.X, weighted @ self.y

    def coefficient_scale(self):
        try:
            self.covariance = self.propose_covariance(np.arange(self.K))
        except np.linalg.LinAlgError:
            # the fit goes on: an error would reveal something of the records
            return np.full(self.R, np.nan)
        return super().coefficient_scale()
