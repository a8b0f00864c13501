"""The passes of :mod:`ppm.synthesizers.mixture.record_passes` compiled by numba: same functions.

NumPy makes several passes over memory, and takes a logarithm in each: here one pass does all, in
vector instructions. A record whose terms have left the range that its reference covers is rare;
the pass then leaves the work to NumPy's function, which goes by way of logs.

Importing this module compiles it, or loads what an earlier process compiled. It needs numba.
"""

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ppm.synthesizers.mixture import record_passes
from ppm.synthesizers.mixture.numerics import LOG_2PI

# records at a time: what a pass works on stays in the fastest cache
CHUNK = 512
LOWEST, HIGHEST = 1e-250, 1e250


def _compile(signature, flags=("contract", "reassoc", "nsz"), **options):
    """Compile at once, for one type of arguments; keep the result in a file if there is a place.

    Of the liberties with floating point only those that leave infinities and NaN alone.
    """
    options |= {"fastmath": set(flags), "error_model": "numpy"}

    def decorate(function):
        try:
            return njit(signature, cache=True, **options)(function)
        except (RuntimeError, OSError):
            # no folder can be written to: every process compiles for itself
            return njit(signature, **options)(function)

    return decorate


@intrinsic
def _bits(context, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@intrinsic
def _from_bits(context, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate


# Calls of a library's exp and log stop LLVM from using vector instructions; these two do not.
# Reordering would spoil the two-part logarithm of 2.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# adding it rounds to a whole number, which then stands in the lowest bits
_ROUND = 6755399441055744.0
_U = np.uint64
_ROUND_BITS, _EXPONENT_BIAS, _MANTISSA_SIZE = _U(0x4338000000000000), _U(1023), _U(52)
_SIGN, _SIGN_AND_EXPONENT = _U(0x8000000000000000), _U(0xFFF0000000000000)
_ROOT_HALF_BITS = _U(0x3FE6A09E667F3BCD)


@_compile("f8(f8)", ("contract",), forceinline=True)
def exp(x):
    """Exponential to one unit in the last place, of an argument moved to between -708 and 709."""
    x = -708.0 if x < -708.0 else x
    x = 709.0 if x > 709.0 else x
    rounded = x * 1.4426950408889634 + _ROUND
    whole = rounded - _ROUND
    r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    # Taylor's series, where |r| is at most log(2) / 2; in short chains that can run side by side
    square = r * r
    fourth = square * square
    low = (1.0 / 6.0 + r * (1.0 / 24.0)) + square * (1.0 / 120.0 + r * (1.0 / 720.0))
    middle = (1.0 / 5040.0 + r * (1.0 / 40320.0)) + square * (
        1.0 / 362880.0 + r * (1.0 / 3628800.0)
    )
    high = (1.0 / 39916800.0 + r * (1.0 / 479001600.0)) + square * (1.0 / 6227020800.0)
    p = 1.0 + (r + square * (0.5 + r * (low + fourth * (middle + fourth * high))))
    return p * _from_bits((_bits(rounded) + _EXPONENT_BIAS) << _MANTISSA_SIZE)


@_compile("f8(f8)", ("contract",), forceinline=True)
def log(x):
    """Logarithm, to one unit in the last place, of a normal positive number."""
    bits = _bits(x)
    shifted = bits - _ROOT_HALF_BITS + _SIGN
    # x = 2**whole (1 + f) with 1 + f between the square roots of 1/2 and 2
    f = _from_bits(bits - ((shifted & _SIGN_AND_EXPONENT) - _SIGN)) - 1.0
    whole = _from_bits((shifted >> _MANTISSA_SIZE) + _ROUND_BITS) - (_ROUND + 2048.0)
    # log(1 + f) = 2 artanh(s), with the minimax polynomial of Sun's fdlibm
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (
        3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)
    )
    even = z * (
        6.666666666666735130e-01
        + w
        * (
            2.857142874366239149e-01
            + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)
        )
    )
    half = 0.5 * f * f
    return whole * _LN2_HIGH - ((half - (s * (half + odd + even) + whole * _LN2_LOW)) - f)


# Loops run from 0 over slices: only then does the compiler know that no index is negative.


@_compile("void(f8[::1], f8[::1])", forceinline=True)
def _add(total, terms):
    for i in range(total.size):
        total[i] += terms[i]


@_compile("void(f8[::1], f8[:,::1], i8, i8, b1[::1])", forceinline=True)
def _sum_rows(total, scaled, start, end, keep):
    """Sum of the rows to keep, of records from start to end."""
    total[:] = 0.0
    for k in range(scaled.shape[0]):
        if keep[k]:
            _add(total, scaled[k, start:end])


# ---- predictors ---------------------------------------------------------------------------------


@_compile("void(f8[:,::1], u2[:,::1], f8[:,::1])")
def _look_up(tables, codes, out):
    for row in range(out.shape[0]):
        table, total = tables[row], out[row]
        a, b, c = codes[0], codes[1], codes[2]
        for i in range(total.size):
            total[i] = table[a[i]] + table[b[i]] + table[c[i]]
        for group in range(3, codes.shape[0], 3):
            a, b, c = codes[group], codes[group + 1], codes[group + 2]
            for i in range(total.size):
                total[i] += table[a[i]] + table[b[i]] + table[c[i]]


@_compile("void(i8[::1], f8[::1], f8[::1], i8[::1], u2[::1], i8[::1], u2[::1], f8[::1], f8[::1])")
def _add_moments(members, alpha, y, starts, columns, pair_starts, pairs, gram, product):
    for m in range(members.size):
        record, weight = members[m], alpha[m]
        for place in range(pair_starts[record], pair_starts[record + 1]):
            gram[pairs[place]] += weight
        weight *= y[m]
        for place in range(starts[record], starts[record + 1]):
            product[columns[place]] += weight


class Design(record_passes.Design):
    """Predictors that are mostly 0 and 1, or take few values, as tables.

    Columns are taken together in groups within which few patterns occur: a product is a sum of
    looked-up values, one a group. X'WX of zeros and ones adds up weights wherever two ones meet.
    Predictors without such structure are left to linear algebra.
    """

    def __init__(self, predictors):
        super().__init__(predictors)
        self.codes, self.patterns = _patterns(predictors)
        ones, R = predictors == 1.0, predictors.shape[1]
        # places in X'WX are kept in two bytes
        self.binary = R < 256 and 2 * np.count_nonzero(ones) < ones.size
        self.binary = self.binary and bool(np.all(ones | (predictors == 0.0)))
        if self.binary:
            present = [np.flatnonzero(row) for row in ones]
            pairs = [R * columns[:, None] + columns for columns in present]
            self.pairs, self.pair_starts = _joined([p[np.tril_indices_from(p)] for p in pairs])
            self.columns, self.starts = _joined(present)

    def times(self, coefficients):
        if self.codes is None:
            return super().times(coefficients)
        out = np.empty((len(coefficients), self.X.shape[0]))
        _look_up(np.ascontiguousarray(coefficients @ self.patterns.T), self.codes, out)
        return out

    def moments(self, members, alpha, y):
        """As in NumPy, but of X'WX perhaps the lower triangle only."""
        if not self.binary:
            return super().moments(members, alpha, y)
        R = self.X.shape[1]
        gram, product = np.zeros(R * R), np.zeros(R)
        _add_moments(
            members, alpha, y, self.starts, self.columns, self.pair_starts, self.pairs, gram,
            product,
        )
        return gram.reshape(R, R), product


def _joined(arrays):
    """Arrays one behind the other, and where each starts."""
    ends = np.cumsum([0, *map(len, arrays)])
    return np.concatenate([*arrays, []]).astype(np.uint16), ends


def _patterns(X, most=256):
    """Rows of X as sums of rows of a table: their numbers (groups, records), and the table.

    A group of columns has at most so many patterns. Both None if there is little to gain.
    """
    records, columns = X.shape
    codes, tables, column, used = [], [], 0, 0
    while column < columns:
        first, code, size = column, np.zeros(records, dtype=np.int64), 1
        while column < columns:
            values, more = np.unique(X[:, column], return_inverse=True)
            if values.size > most:
                break
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
    # a row of zeros fills up to a multiple of three groups, which are looked up together
    codes += [np.full(records, used)] * (-len(codes) % 3)
    return np.array(codes, dtype=np.uint16), np.concatenate([*tables, np.zeros((1, columns))])


# ---- passes -------------------------------------------------------------------------------------


@_compile("void(f8[::1], f8[:,::1], f8[::1], f8[:,::1])")
def _log_densities(y, means, sigma, out):
    for k in range(sigma.size):
        scale, constant = 1.0 / sigma[k], -math.log(sigma[k]) - 0.5 * LOG_2PI
        for i in range(y.size):
            standard = (y[i] - means[k, i]) * scale
            out[k, i] = -0.5 * standard * standard + constant


def log_densities(y, means, sigma):
    out = np.empty_like(means)
    _log_densities(y, means, sigma, out)
    return out


@_compile("void(f8[::1], f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def _reference(log_pi, log_density, top, scaled, log_f):
    for start in range(0, top.size, CHUNK):
        end = min(start + CHUNK, top.size)
        highest, total = top[start:end], log_f[start:end]
        highest[:] = -np.inf
        total[:] = 0.0
        for k in range(log_pi.size):
            density, share = log_density[k, start:end], log_pi[k]
            for i in range(highest.size):
                joint = share + density[i]
                highest[i] = joint if joint > highest[i] else highest[i]
        for k in range(log_pi.size):
            density, term, share = log_density[k, start:end], scaled[k, start:end], log_pi[k]
            for i in range(highest.size):
                value = exp(share + density[i] - highest[i])
                term[i] = value
                total[i] += value
        for i in range(highest.size):
            total[i] = log(total[i]) + highest[i]


def reference(log_pi, log_density):
    top, log_f = np.empty((2, log_density.shape[1]))
    scaled = np.empty_like(log_density)
    _reference(log_pi, log_density, top, scaled, log_f)
    return top, scaled, log_f


@_compile("void(f8[:,::1], f8[::1], i8[::1])")
def _draw_labels(scaled, uniforms, labels):
    everyone = np.ones(scaled.shape[0], dtype=np.bool_)
    limits, totals = np.empty(CHUNK), np.empty(CHUNK)
    for start in range(0, uniforms.size, CHUNK):
        end = min(start + CHUNK, uniforms.size)
        limit, total = limits[: end - start], totals[: end - start]
        uniform, label = uniforms[start:end], labels[start:end]
        _sum_rows(total, scaled, start, end, everyone)
        for i in range(limit.size):
            limit[i] = uniform[i] * total[i]
        total[:] = 0.0
        label[:] = 0
        for k in range(scaled.shape[0]):
            row = scaled[k, start:end]
            for i in range(limit.size):
                total[i] += row[i]
                label[i] += 1 if total[i] < limit[i] else 0


def draw_labels(scaled, uniforms):
    labels = np.empty(uniforms.size, dtype=np.int64)
    _draw_labels(scaled, uniforms, labels)
    return labels


@_compile("void(i8[::1], f8[::1], i8[::1], i8[::1], f8[::1])")
def _group_by_label(labels, alpha, order, count, weight):
    for i in range(labels.size):
        count[labels[i]] += 1
        weight[labels[i]] += alpha[i]
    place = np.zeros_like(count)
    for k in range(1, count.size):
        place[k] = place[k - 1] + count[k - 1]
    for i in range(labels.size):
        order[place[labels[i]]] = i
        place[labels[i]] += 1


def group_by_label(labels, alpha, components):
    order = np.empty(labels.size, dtype=np.int64)
    count = np.zeros(components, dtype=np.int64)
    weight = np.zeros(components)
    _group_by_label(labels, alpha, order, count, weight)
    return order, count, weight


@_compile(
    "i8(i8[::1], f8[::1], f8[:,::1], i8[::1], f8[:,::1], f8[::1], f8[::1], f8[:,::1])"
)
def _replace_terms(rows, log_shares, densities, density_rows, scaled, top, log_f, new):
    keep = np.ones(scaled.shape[0], dtype=np.bool_)
    for j in range(rows.size):
        keep[rows[j]] = False
    wrong = 0
    for start in range(0, top.size, CHUNK):
        end = min(start + CHUNK, top.size)
        total, high = log_f[start:end], top[start:end]
        _sum_rows(total, scaled, start, end, keep)
        for j in range(rows.size):
            density, term = densities[density_rows[j], start:end], new[j, start:end]
            log_share = log_shares[j]
            for i in range(total.size):
                value = exp(log_share + density[i] - high[i])
                term[i] = value
                total[i] += value
        for i in range(total.size):
            wrong += 0 if (total[i] > LOWEST) & (total[i] < HIGHEST) else 1
            total[i] = log(total[i]) + high[i]
    return wrong


def replace_terms(rows, log_shares, densities, density_rows, log_pi, log_density, scaled, top):
    log_f, new = np.empty(top.size), np.empty((rows.size, top.size))
    if _replace_terms(rows, log_shares, densities, density_rows, scaled, top, log_f, new):
        return record_passes.replace_terms(
            rows, log_shares, densities, density_rows, log_pi, log_density, scaled, top
        )
    return log_f, new


@_compile("f8(f8[::1], f8[::1], f8[::1])")
def weighted_change(weights, new, old):
    total = 0.0
    for i in range(weights.size):
        total += weights[i] * (new[i] - old[i])
    return total


@_compile("void(i8, f8[:,::1], f8[::1])")
def _rest_of(k, scaled, rest):
    keep = np.ones(scaled.shape[0], dtype=np.bool_)
    keep[k] = False
    for start in range(0, rest.size, CHUNK):
        end = min(start + CHUNK, rest.size)
        _sum_rows(rest[start:end], scaled, start, end, keep)


def rest_of(k, log_pi, log_density, scaled, top):
    """Sum of the other components' terms, scaled."""
    rest = np.empty(top.size)
    _rest_of(k, scaled, rest)
    return rest


@_compile(
    "i8(i8, f8[:,::1], f8[::1], f8[:,::1], f8[:,::1], f8, f8, f8[::1], f8[::1], f8[::1], f8[::1],"
    " b1[::1])"
)
def _try_steps(
    step, shifts, thresholds, residual, log_f, factor, constant, rest, rest_members, rest_alpha,
    top, accepted,
):
    # of residual and log_f, the first row is the present state and the second is for proposals
    now = 0
    while step < thresholds.size:
        new = 1 - now
        members, everyone, wrong = 0.0, 0.0, 0
        for start in range(0, top.size, CHUNK):
            end = min(start + CHUNK, top.size)
            old, shift = residual[now, start:end], shifts[step, start:end]
            proposal, others = residual[new, start:end], rest[start:end]
            old_log, new_log = log_f[now, start:end], log_f[new, start:end]
            high, mine, all_rest = top[start:end], rest_members[start:end], rest_alpha[start:end]
            # two loops, because one would need more registers than there are
            for i in range(old.size):
                moved = old[i] - shift[i]
                square = moved * moved
                total = others[i] + exp(factor * square + (constant - high[i]))
                proposal[i] = moved
                new_log[i] = total
                members += mine[i] * (square - old[i] * old[i])
                wrong += 0 if (total > LOWEST) & (total < HIGHEST) else 1
            for i in range(old.size):
                value = log(new_log[i]) + high[i]
                everyone += all_rest[i] * (value - old_log[i])
                new_log[i] = value
        if wrong > 0:
            break
        if factor * members - everyone >= thresholds[step]:
            accepted[step] = True
            now = new
        step += 1
    if now == 1:
        residual[0, :] = residual[1, :]
        log_f[0, :] = log_f[1, :]
    return step


def try_steps(k, shifts, thresholds, residual, sigma, rest, rest_members, rest_alpha, state):
    log_pi, log_density, scaled, top, log_f = state
    constant = log_pi[k] - math.log(sigma) - 0.5 * LOG_2PI
    accepted = np.zeros(len(shifts), dtype=bool)
    residuals, log_fs = np.empty((2, 2, top.size))
    residuals[0], log_fs[0] = residual, log_f
    step = 0
    while step < len(shifts):
        step = _try_steps(
            step, shifts, thresholds, residuals, log_fs, -0.5 / sigma**2, constant, rest,
            rest_members, rest_alpha, top, accepted,
        )
        if step < len(shifts):
            accepted[step : step + 1], residuals[0], log_fs[0] = record_passes.try_steps(
                k, shifts[step : step + 1], thresholds[step : step + 1], residuals[0].copy(),
                sigma, record_passes.rest_of(k, log_pi, log_density, scaled, top), rest_members,
                rest_alpha, (log_pi, log_density, scaled, top, log_fs[0].copy()),
            )
            step += 1
    return accepted, residuals[0], log_fs[0]


@_compile(
    "i8(f8, f8, f8, f8, f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1],"
    " f8[::1])"
)
def _try_scale(
    log_share, new, threshold, sigma, residual, rest, rest_members, rest_alpha, top, log_f,
    new_log_f, log_density, scaled,
):
    factor, constant = -0.5 / (new * new), -math.log(new) - 0.5 * LOG_2PI
    old_factor, old_constant = -0.5 / (sigma * sigma), -math.log(sigma) - 0.5 * LOG_2PI
    by, plus = factor - old_factor, constant - old_constant
    members, everyone, wrong = 0.0, 0.0, 0
    for start in range(0, top.size, CHUNK):
        end = min(start + CHUNK, top.size)
        distance, others, high = residual[start:end], rest[start:end], top[start:end]
        mine, all_rest = rest_members[start:end], rest_alpha[start:end]
        old_log, new_log = log_f[start:end], new_log_f[start:end]
        density, term = log_density[start:end], scaled[start:end]
        for i in range(distance.size):
            square = distance[i] * distance[i]
            density[i] = factor * square + constant
            term[i] = exp(density[i] + (log_share - high[i]))
            total = others[i] + term[i]
            new_log[i] = total
            members += mine[i] * (by * square + plus)
            wrong += 0 if (total > LOWEST) & (total < HIGHEST) else 1
        for i in range(distance.size):
            new_log[i] = log(new_log[i]) + high[i]
            everyone += all_rest[i] * (new_log[i] - old_log[i])
    if wrong > 0:
        return -1
    if members - everyone >= threshold:
        return 1
    for i in range(top.size):
        density = old_factor * residual[i] * residual[i] + old_constant
        log_density[i] = density
        scaled[i] = exp(density + (log_share - top[i]))
    return 0


def try_scale(k, new, threshold, residual, sigma, rest, rest_members, rest_alpha, state):
    log_pi, log_density, scaled, top, log_f = state
    new_log_f = np.empty(top.size)
    found = _try_scale(
        log_pi[k], new, threshold, sigma, residual, rest, rest_members, rest_alpha, top, log_f,
        new_log_f, log_density[k], scaled[k],
    )
    if found < 0:
        rest = record_passes.rest_of(k, log_pi, log_density, scaled, top)
        return record_passes.try_scale(
            k, new, threshold, residual, sigma, rest, rest_members, rest_alpha, state
        )
    return bool(found), new_log_f if found else log_f


@_compile(
    "i8(i8, i8, f8, f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])"
)
def _pair_terms(a, b, total, log_density, scaled, top, rest, first, second):
    keep = np.ones(scaled.shape[0], dtype=np.bool_)
    keep[a] = keep[b] = False
    wrong = 0
    for start in range(0, top.size, CHUNK):
        end = min(start + CHUNK, top.size)
        others, high = rest[start:end], top[start:end]
        one, density_a = first[start:end], log_density[a, start:end]
        two, density_b = second[start:end], log_density[b, start:end]
        _sum_rows(others, scaled, start, end, keep)
        for i in range(others.size):
            one[i] = exp(total + density_a[i] - high[i])
            two[i] = exp(total + density_b[i] - high[i])
            largest = others[i] + one[i] + two[i]
            wrong += 0 if (largest > 1e-150) & (largest < 1e150) else 1
    return wrong


def pair_terms(pair, total, log_pi, log_density, scaled, top):
    terms = np.empty((3, top.size))
    if _pair_terms(pair[0], pair[1], total, log_density, scaled, top, *terms):
        return record_passes.pair_terms(pair, total, log_pi, log_density, scaled, top)
    return terms


@_compile("f8(f8, f8, f8[::1], f8[::1], f8[::1], f8[::1])")
def share_log_density(x, prior_count, alpha, rest, first, second):
    # log(1 + exp(|x|)) is |x| more than this
    small = math.log1p(math.exp(-abs(x)))
    high = math.exp(-small)
    low = math.exp(-small - abs(x))
    u, v = (high, low) if x > 0 else (low, high)
    total = 0.0
    for i in range(alpha.size):
        total += alpha[i] * log(rest[i] + u * first[i] + v * second[i])
    return total - prior_count * (2.0 * small + abs(x))
