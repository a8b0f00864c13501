"""Passes over the records of the censored mixture, compiled by numba.

Importing this module compiles it, or loads what an earlier process compiled. It needs numba.
"""

import math

from ppm.synthesizers.mixture.compiled_passes import CHUNK, HIGHEST, LOWEST, _compile, exp, log
from ppm.synthesizers.mixture.numerics import LOG_2PI


@_compile("f8(f8[::1], f8[::1], f8[::1], f8, f8, b1)")
def excess_change(new, old, weights, low, high, smooth):
    """Sum of log f minus its term, new less old."""
    total = 0.0
    half = 0.5 * (high - low)
    middle = low + half
    if smooth:
        for i in range(new.size):
            # tanh(a) - tanh(b) by way of exponentials, which the compiler makes vectors of
            a = exp(2.0 * (weights[i] * new[i] - middle) / half)
            b = exp(2.0 * (weights[i] * old[i] - middle) / half)
            total += (new[i] - old[i]) - half * (2.0 / (b + 1.0) - 2.0 / (a + 1.0))
    else:
        for i in range(new.size):
            a = min(max(weights[i] * new[i], low), high)
            b = min(max(weights[i] * old[i], low), high)
            total += (new[i] - old[i]) - (a - b)
    return total


@_compile(
    "Tuple((f8, i8))(f8, f8[::1], f8, f8[::1], f8, f8[::1], f8[::1], f8[::1], f8[::1])"
)
def propose(log_share, new, new_sigma, old, old_sigma, rest, rest_members, top, log_f):
    """Log f with other residuals and another scale of a component; and its members' part."""
    factor, constant = -0.5 / (new_sigma * new_sigma), -math.log(new_sigma) - 0.5 * LOG_2PI
    old_factor, old_constant = -0.5 / (old_sigma * old_sigma), -math.log(old_sigma) - 0.5 * LOG_2PI
    plus = constant - old_constant
    members, wrong = 0.0, 0
    for start in range(0, top.size, CHUNK):
        end = min(start + CHUNK, top.size)
        fresh, before, others = new[start:end], old[start:end], rest[start:end]
        mine, high, out = rest_members[start:end], top[start:end], log_f[start:end]
        for i in range(fresh.size):
            square = factor * fresh[i] * fresh[i]
            total = others[i] + exp(square + (constant + log_share - high[i]))
            out[i] = total
            members += mine[i] * (square - old_factor * before[i] * before[i] + plus)
            wrong += 0 if (total > LOWEST) & (total < HIGHEST) else 1
        for i in range(fresh.size):
            out[i] = log(out[i]) + high[i]
    return members, wrong
