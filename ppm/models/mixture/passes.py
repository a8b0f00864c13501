"""Compiled passes over the records, in which the finite mixture's sampler spends its time.

Each does in one pass over memory, with vector instructions, what NumPy does in several. Arrays by
component and record are (components, records). In the rare case that a sum leaves the range of its
offset, :func:`exact_log_f` computes it in logarithms.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ppm.models.mixture.numerics import LOG_2PI, log_sum_exp

# records at a time, so that a pass works in the fastest cache
CHUNK = 512
LOWEST, HIGHEST = 1e-250, 1e250
# log f where no component has the record: finite, so that differences are numbers
NOTHING = -1e300


def _compile(signature, flags=("contract", "reassoc", "nsz"), **options):
    """Compile at once for one signature, and store the code in a file if a folder is writable."""
    # these optimisations preserve infinities and NaN
    options |= {"fastmath": set(flags), "error_model": "numpy"}

    def decorate(function):
        try:
            return njit(signature, cache=True, **options)(function)
        except (RuntimeError, OSError):
            # no folder is writable: every process compiles for itself
            return njit(signature, **options)(function)

    return decorate


# Calls of a library's exp and log stop LLVM from using vector instructions; these two do not. With
# math.exp and math.log in their place a sweep of 10 components over 5,658 records and 36 predictors
# took 1.9 to 2.1 times as long.
# Reordering would spoil the two-part logarithm of 2.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# adding it rounds to a whole number, in the lowest bits
_ROUND = 6755399441055744.0
_U = np.uint64
_ROUND_BITS, _EXPONENT_BIAS, _MANTISSA_SIZE = _U(0x4338000000000000), _U(1023), _U(52)
_SIGN, _SIGN_AND_EXPONENT = _U(0x8000000000000000), _U(0xFFF0000000000000)
_ROOT_HALF_BITS = _U(0x3FE6A09E667F3BCD)


@_compile("f8(f8)", ("contract",), forceinline=True)
def exp(x):
    """Exponential, to one unit in the last place, of x clipped to [-708, 709]."""
    x = -708.0 if x < -708.0 else x
    x = 709.0 if x > 709.0 else x
    rounded = x * 1.4426950408889634 + _ROUND
    whole = rounded - _ROUND
    r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    # Taylor's series, where |r| is at most log(2) / 2; in short chains that can run side by side
    square = r * r
    fourth = square * square
    low = (1.0 / 6.0 + r * (1.0 / 24.0)) + square * (1.0 / 120.0 + r * (1.0 / 720.0))
    middle = 1.0 / 5040.0 + r * (1.0 / 40320.0)
    middle += square * (1.0 / 362880.0 + r * (1.0 / 3628800.0))
    high = (1.0 / 39916800.0 + r * (1.0 / 479001600.0)) + square * (1.0 / 6227020800.0)
    p = 1.0 + (r + square * (0.5 + r * (low + fourth * (middle + fourth * high))))
    exponent = np.float64(rounded).view(_U) + _EXPONENT_BIAS
    return p * _U(exponent << _MANTISSA_SIZE).view(np.float64)


@_compile("f8(f8)", ("contract",), forceinline=True)
def log(x):
    """Logarithm, to one unit in the last place, of a normal positive number."""
    bits = np.float64(x).view(_U)
    shifted = bits - _ROOT_HALF_BITS + _SIGN
    # x = 2**whole (1 + f) with 1 + f between the square roots of 1/2 and 2
    f = _U(bits - ((shifted & _SIGN_AND_EXPONENT) - _SIGN)).view(np.float64) - 1.0
    whole = _U((shifted >> _MANTISSA_SIZE) + _ROUND_BITS).view(np.float64) - (
        _ROUND + 2048.0
    )
    # log(1 + f) = 2 artanh(s), with the minimax polynomial of Sun's fdlibm
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = 2.222219843214978396e-01 + w * 1.531383769920937332e-01
    odd = w * (3.999999999940941908e-01 + w * odd)
    even = 1.818357216161805012e-01 + w * 1.479819860511658591e-01
    even = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * even))
    half = 0.5 * f * f
    return whole * _LN2_HIGH - (
        (half - (s * (half + odd + even) + whole * _LN2_LOW)) - f
    )


# Loops run from 0 over slices: only then does the compiler know that no index is negative.


@_compile("void(f8[::1], f8[:,::1], i8, i8, b1[::1])", forceinline=True)
def _sum_rows(total, scaled, start, end, keep):
    """Sum of the rows to keep, of records from start to end."""
    total[:] = 0.0
    for k in range(scaled.shape[0]):
        if keep[k]:
            row = scaled[k, start:end]
            for i in range(total.size):
                total[i] += row[i]


@_compile("void(f8[::1], f8[::1], f8, f8[::1], f8[::1])", forceinline=True)
def _add_term(total, term, log_share, density, offset):
    """Add a component's term of each record, and keep it."""
    for i in range(total.size):
        value = exp(log_share + density[i] - offset[i])
        term[i] = value
        total[i] += value


@_compile("void(f8[:,::1], u2[:,::1], f8[:,::1])")
def _look_up(tables, codes, out):
    for start in range(0, out.shape[1], CHUNK):
        end = min(start + CHUNK, out.shape[1])
        for row in range(out.shape[0]):
            table, total = tables[row], out[row, start:end]
            total[:] = 0.0
            for group in range(codes.shape[0]):
                code = codes[group, start:end]
                for i in range(total.size):
                    total[i] += table[code[i]]


@_compile(
    "void(i8[::1], f8[::1], f8[::1], i8[::1], u2[::1], f8[::1], f8[:,::1], f8[::1])"
)
def _add_moments(members, alpha, y, starts, columns, values, gram, product):
    for m in range(members.size):
        start, end = starts[members[m]], starts[members[m] + 1]
        column, value = columns[start:end], values[start:end]
        for p in range(column.size):
            row, weighted = gram[column[p]], alpha[m] * value[p]
            product[column[p]] += weighted * y[m]
            for q in range(p + 1):
                row[column[q]] += weighted * value[q]


class Design:
    """Predictors X (records, predictors), and the products with X that a sweep needs.

    Columns with few distinct values are grouped: a product is then a sum of looked-up values, one
    per group. If most predictors are 0, X'WX sums over the others.
    """

    def __init__(self, predictors):
        self.X, self.XT = predictors, np.ascontiguousarray(predictors.T)
        self.codes, self.patterns = _patterns(predictors)
        self.sparse = (
            len(self.XT) < 65_536 and 2 * np.count_nonzero(predictors) < predictors.size
        )
        if self.sparse:
            rows, columns = np.nonzero(predictors)
            self.columns, self.values = (
                columns.astype(np.uint16),
                predictors[rows, columns],
            )
            self.starts = np.searchsorted(rows, np.arange(len(predictors) + 1))

    def times(self, coefficients):
        """Coefficients (m, predictors) times X', shape (m, records)."""
        if self.codes is None:
            return coefficients @ self.XT
        out = np.empty((len(coefficients), self.X.shape[0]))
        _look_up(np.ascontiguousarray(coefficients @ self.patterns.T), self.codes, out)
        return out

    def moments(self, members, alpha, y):
        """Lower triangle of X'WX, and X'Wy, of the members (numbers, weights, responses)."""
        if not self.sparse:
            X = self.X[members]
            weighted = X.T * alpha
            return weighted @ X, weighted @ y
        gram, product = np.zeros((self.X.shape[1],) * 2), np.zeros(self.X.shape[1])
        _add_moments(
            members, alpha, y, self.starts, self.columns, self.values, gram, product
        )
        return gram, product


def _patterns(X, most=256):
    """Rows of X as sums of rows of a table: numbers (groups, records), table; or None twice."""
    records, columns = X.shape
    codes, tables, column, used = [], [], 0, 0
    while column < columns:
        first, code, size = column, np.zeros(records, dtype=np.int64), 1
        while column < columns:
            values, more = np.unique(X[:, column], return_inverse=True)
            patterns, joint = np.unique(code * values.size + more, return_inverse=True)
            if patterns.size > most:
                break
            code, size, column = joint, patterns.size, column + 1
        if column == first:
            return None, None
        table = np.zeros((size, columns))
        table[code, first:column] = X[:, first:column]
        codes.append(code + used)
        tables.append(table)
        used += size
    if 3 * len(codes) > columns or 2 * used > records or used > 65_535:
        return None, None
    return np.array(codes, dtype=np.uint16), np.concatenate(tables)


class MixtureState(NamedTuple):
    """What every record's f_i is the sum of."""

    # log π_k: (components,)
    log_pi: np.ndarray
    # log N_k
    log_density: np.ndarray
    # π_k N_k divided by the exponential of the offset
    scaled: np.ndarray
    # a number for each record
    offset: np.ndarray


def exact_log_f(state, rows, log_shares, densities):
    """Log f on the log scale, with other mixture weights and densities of some components."""
    joint = state.log_pi[:, None] + state.log_density
    joint[rows] = np.reshape(log_shares, (-1, 1)) + densities
    return log_sum_exp(joint)


@_compile("UniTuple(f8, 2)(f8)")
def normal_parts(sigma):
    """Factor of the squared residual in a normal log-density, and its constant."""
    return -0.5 / sigma**2, -math.log(sigma) - 0.5 * LOG_2PI


@_compile("f8[:,::1](f8[::1], f8[:,::1], f8[::1])")
def log_densities(y, means, sigma):
    """Normal log-density of every record under every component."""
    out = np.empty_like(means)
    for k in range(sigma.size):
        scale, constant = 1.0 / sigma[k], -math.log(sigma[k]) - 0.5 * LOG_2PI
        for i in range(y.size):
            standard = (y[i] - means[k, i]) * scale
            out[k, i] = -0.5 * standard * standard + constant
    return out


@_compile("Tuple((f8[::1], f8[:,::1], f8[::1]))(f8[::1], f8[:,::1])")
def rescale(log_pi, log_density):
    """New ``offset``, ``scaled`` and log f of every record, which is NaN if a term is."""
    offset, log_f = np.empty(log_density.shape[1]), np.empty(log_density.shape[1])
    scaled = np.empty_like(log_density)
    for start in range(0, offset.size, CHUNK):
        end = min(start + CHUNK, offset.size)
        highest, total = offset[start:end], log_f[start:end]
        highest[:] = NOTHING
        total[:] = 0.0
        for k in range(log_pi.size):
            density, share = log_density[k, start:end], log_pi[k]
            for i in range(highest.size):
                joint = share + density[i]
                highest[i] = joint if joint > highest[i] else highest[i]
        for k in range(log_pi.size):
            density, term = log_density[k, start:end], scaled[k, start:end]
            _add_term(total, term, log_pi[k], density, highest)
        for i in range(highest.size):
            total[i] = log(total[i]) + (highest[i] + 0.0 * total[i])
    return offset, scaled, log_f


@_compile("i8[::1](f8[:,::1], f8[::1])")
def draw_labels(scaled, uniforms):
    """Labels by inverting their distributions."""
    labels = np.zeros(uniforms.size, dtype=np.int64)
    keep = np.ones(scaled.shape[0], dtype=np.bool_)
    limits, totals = np.empty(CHUNK), np.empty(CHUNK)
    for start in range(0, uniforms.size, CHUNK):
        end = min(start + CHUNK, uniforms.size)
        limit, total = limits[: end - start], totals[: end - start]
        uniform, label = uniforms[start:end], labels[start:end]
        _sum_rows(total, scaled, start, end, keep)
        for i in range(limit.size):
            limit[i] = uniform[i] * total[i]
        total[:] = 0.0
        for k in range(scaled.shape[0]):
            row = scaled[k, start:end]
            for i in range(limit.size):
                total[i] += row[i]
                label[i] += 1 if total[i] < limit[i] else 0
    return labels


@_compile("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[:,::1])")
def _replace_terms(rows, log_shares, densities, scaled, offset, log_f, new):
    keep = np.ones(scaled.shape[0], dtype=np.bool_)
    for j in range(rows.size):
        keep[rows[j]] = False
    wrong = 0
    for start in range(0, offset.size, CHUNK):
        end = min(start + CHUNK, offset.size)
        total, high = log_f[start:end], offset[start:end]
        _sum_rows(total, scaled, start, end, keep)
        for j in range(rows.size):
            density, term = densities[j, start:end], new[j, start:end]
            _add_term(total, term, log_shares[j], density, high)
        for i in range(total.size):
            wrong += 0 if (total[i] > LOWEST) & (total[i] < HIGHEST) else 1
            total[i] = log(total[i]) + high[i]
    return wrong


def replace_terms(state, rows, log_shares, densities):
    """Log f, and ``scaled`` of ``rows``, with other log mixture weights and densities of these."""
    records = state.offset.size
    log_f, new = np.empty(records), np.empty((rows.size, records))
    if _replace_terms(
        rows, log_shares, densities, state.scaled, state.offset, log_f, new
    ):
        log_f = exact_log_f(state, rows, log_shares, densities)
    return log_f, new


@_compile("f8[::1](i8, f8[:,::1])")
def rest_of(k, scaled):
    """Sum of the other components' terms, scaled."""
    rest = np.empty(scaled.shape[1])
    keep = np.ones(scaled.shape[0], dtype=np.bool_)
    keep[k] = False
    for start in range(0, rest.size, CHUNK):
        end = min(start + CHUNK, rest.size)
        _sum_rows(rest[start:end], scaled, start, end, keep)
    return rest


@_compile(
    "Tuple((f8, f8, i8))(f8, f8, f8, f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])"
)
def _move_component(
    factor,
    constant,
    log_share,
    residual,
    rest,
    offset,
    density_weights,
    log_f_weights,
    log_f,
):
    """New log f; weighted sums over records of the component's log-density and of log f."""
    density_sum, log_f_sum, wrong = 0.0, 0.0, 0
    for start in range(0, offset.size, CHUNK):
        end = min(start + CHUNK, offset.size)
        distance, others, high = residual[start:end], rest[start:end], offset[start:end]
        inner, outer, out = (
            density_weights[start:end],
            log_f_weights[start:end],
            log_f[start:end],
        )
        # two loops, because one would need more registers than there are
        for i in range(out.size):
            density = factor * distance[i] * distance[i] + constant
            value = others[i] + exp(density + (log_share - high[i]))
            out[i] = value
            density_sum += inner[i] * density
            wrong += 0 if (value > LOWEST) & (value < HIGHEST) else 1
        for i in range(out.size):
            value = log(out[i]) + high[i]
            out[i] = value
            log_f_sum += outer[i] * value
    return density_sum, log_f_sum, wrong


def move_component(state, k, residual, sigma, rest, density_weights, log_f_weights):
    """Component k at other residuals and scale: log ratio for a Metropolis decision, and log f.

    The ratio is the weighted sum of the component's log-density minus that of log f. ``rest`` is
    from :func:`rest_of`.
    """
    factor, constant = normal_parts(sigma)
    log_f = np.empty(residual.size)
    density_sum, log_f_sum, wrong = _move_component(
        factor,
        constant,
        state.log_pi[k],
        residual,
        rest,
        state.offset,
        density_weights,
        log_f_weights,
        log_f,
    )
    if wrong:
        density = factor * residual**2 + constant
        log_f = exact_log_f(state, [k], state.log_pi[k], density)
        log_f_sum = log_f_weights @ log_f
    return density_sum - log_f_sum, log_f


@_compile("void(f8, f8, f8[::1], f8[::1], f8[::1], f8[::1])")
def set_component(log_share, sigma, residual, offset, log_density, scaled):
    """Set a component's rows of the log-densities and of ``scaled``."""
    factor, constant = normal_parts(sigma)
    for i in range(offset.size):
        density = factor * residual[i] * residual[i] + constant
        log_density[i] = density
        scaled[i] = exp(density + (log_share - offset[i]))


@_compile("i8(i8, i8, f8, f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def _pair_terms(a, b, total, log_density, scaled, offset, rest, first, second):
    keep = np.ones(scaled.shape[0], dtype=np.bool_)
    keep[a] = keep[b] = False
    wrong = 0
    for start in range(0, offset.size, CHUNK):
        end = min(start + CHUNK, offset.size)
        others, high = rest[start:end], offset[start:end]
        one, density_a = first[start:end], log_density[a, start:end]
        two, density_b = second[start:end], log_density[b, start:end]
        _sum_rows(others, scaled, start, end, keep)
        for i in range(others.size):
            one[i] = exp(total + density_a[i] - high[i])
            two[i] = exp(total + density_b[i] - high[i])
            largest = others[i] + one[i] + two[i]
            wrong += 0 if (largest > 1e-150) & (largest < 1e150) else 1
    return wrong


def pair_terms(state, pair, total):
    """f_i without a pair, and its terms at all of the weight exp(total), scaled by one factor."""
    terms = np.empty((3, state.offset.size))
    if _pair_terms(*pair, total, state.log_density, state.scaled, state.offset, *terms):
        rest = exact_log_f(state, pair, 0.0, -np.inf)
        both = total + state.log_density[pair]
        offset = np.maximum(rest, both.max(axis=0))
        return np.exp(rest - offset), *np.exp(both - offset)
    return terms


@_compile("f8(f8, f8, f8[::1], f8[::1], f8[::1], f8[::1])")
def share_log_density(x, prior_count, alpha, rest, first, second):
    """Log-density of x = log(u / (1 - u)), where u is the share of the first of a pair."""
    # log(1 + exp(|x|)) is |x| more than this
    small = math.log1p(math.exp(-abs(x)))
    high = math.exp(-small)
    low = math.exp(-small - abs(x))
    u, v = (high, low) if x > 0 else (low, high)
    total = 0.0
    for i in range(alpha.size):
        total += alpha[i] * log(rest[i] + u * first[i] + v * second[i])
    return total - prior_count * (2.0 * small + abs(x))
