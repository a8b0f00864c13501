"""Passes over the records that the finite mixture's sampler spends its time in, in NumPy.

:mod:`ppm.synthesizers.mixture.compiled_passes` has the same functions compiled, with the same
results to rounding. Arrays by component and record are (components, records). ``scaled`` holds the
terms :math:`\\pi_k N_k` of every record's :math:`f_i` divided by the exponential of ``top``, a
reference of its own for each record.
"""

import numpy as np

from ppm.synthesizers.mixture.numerics import LOG_2PI, log_add_exp, log_sum_exp


class Design:
    """Predictors X (records, predictors), and the products of theirs that a sweep needs."""

    def __init__(self, predictors):
        self.X = predictors
        self.XT = np.ascontiguousarray(predictors.T)

    def times(self, coefficients):
        """Coefficients (m, predictors) times X', shape (m, records)."""
        return coefficients @ self.XT

    def moments(self, members, alpha, y):
        """X'WX and X'Wy of the member records (numbers, weights and responses of those)."""
        X = self.X[members]
        weighted = X.T * alpha
        return weighted @ X, weighted @ y


def log_densities(y, means, sigma):
    """Normal log-density of every record under every component."""
    residual = y - means
    residual /= sigma[:, None]
    return -0.5 * residual**2 - (np.log(sigma) + 0.5 * LOG_2PI)[:, None]


def reference(log_pi, log_density):
    """New ``top``, ``scaled`` and log f of every record."""
    joint = log_pi[:, None] + log_density
    top = joint.max(axis=0) if joint.shape[1] else np.zeros(0)
    scaled = np.exp(joint - top)
    return top, scaled, np.log(scaled.sum(axis=0)) + top


def log_f_without(left_out, log_pi, log_density, scaled, top):
    """Log of f_i without the terms of some components; -inf if no others are there."""
    keep = np.ones(log_pi.size)
    keep[list(left_out)] = 0.0
    total = keep @ scaled
    result = np.log(total) + top
    # the common reference of a record has moved out of range: do those few in logs
    wrong = np.flatnonzero(~((total > 1e-250) & (total < 1e250)))
    if wrong.size:
        others = np.flatnonzero(keep)
        terms = log_pi[others, None] + log_density[np.ix_(others, wrong)]
        result[wrong] = log_sum_exp(terms) if others.size else -np.inf
    return result


def draw_labels(scaled, uniforms):
    """Labels by inverting their distributions."""
    cumulative = np.cumsum(scaled, axis=0)
    return (cumulative < uniforms * cumulative[-1]).sum(axis=0)


def group_by_label(labels, alpha, components):
    """Record numbers in the order of their labels; counts and sums of weights by component."""
    order = np.argsort(labels, kind="stable")
    count = np.bincount(labels, minlength=components)
    return order, count, np.bincount(labels, alpha, minlength=components)


def replace_terms(rows, log_shares, densities, density_rows, log_pi, log_density, scaled, top):
    """Log f and ``scaled`` of ``rows`` if these components had other weights and densities.

    Their new log mixture weights are ``log_shares``, their new log-densities ``density_rows`` of
    ``densities``.
    """
    joint = log_shares[:, None] + densities[density_rows]
    log_f = log_add_exp(
        log_f_without(rows, log_pi, log_density, scaled, top), log_sum_exp(joint)
    )
    return log_f, np.exp(joint - top)


def weighted_change(weights, new, old):
    """Sum of weights times differences."""
    return weights @ (new - old)


def rest_of(k, log_pi, log_density, scaled, top):
    """What the moves of component k need to know of the others: here, log f without it."""
    return log_f_without((k,), log_pi, log_density, scaled, top)


def try_steps(k, shifts, thresholds, residual, sigma, rest, rest_members, rest_alpha, state):
    """Metropolis decisions on steps of the coefficients of component k, one after the other.

    Parameters
    ----------
    k : int
        The component.
    shifts : (steps, records)
        By how much each step moves the records' means.
    thresholds : (steps,)
        A step is accepted if its log ratio is not below.
    residual : (records,)
        Response minus mean; not changed.
    sigma : float
        Scale of the component.
    rest : object
        What :func:`rest_of` returned.
    rest_members, rest_alpha : (records,)
        1 - α; the first is 0 outside the component.
    state : tuple
        log_pi, log_density, scaled, top, log_f.

    Returns
    -------
    accepted : bool array (steps,)
    residual, log_f : (records,)
    """
    log_pi, *_, log_f = state
    constant = log_pi[k] - np.log(sigma) - 0.5 * LOG_2PI
    factor = -0.5 / sigma**2
    accepted = np.zeros(len(shifts), dtype=bool)
    for step, shift in enumerate(shifts):
        proposal = residual - shift
        new_log_f = log_add_exp(rest, factor * proposal**2 + constant)
        log_ratio = factor * (rest_members @ (proposal**2 - residual**2)) - rest_alpha @ (
            new_log_f - log_f
        )
        # a ratio that is not a number is a rejection
        if log_ratio >= thresholds[step]:
            accepted[step], residual, log_f = True, proposal, new_log_f
    return accepted, residual, log_f


def try_scale(k, new, threshold, residual, sigma, rest, rest_members, rest_alpha, state):
    """Metropolis decision on a new scale of component k, and its rows when all is done.

    Returns whether it was accepted and log f; changes row k of log_density and scaled.
    """
    log_pi, log_density, scaled, top, log_f = state
    accepted = False
    proposal = (-0.5 / new**2) * residual**2 - np.log(new) - 0.5 * LOG_2PI
    current = (-0.5 / sigma**2) * residual**2 - np.log(sigma) - 0.5 * LOG_2PI
    new_log_f = log_add_exp(rest, log_pi[k] + proposal)
    log_ratio = rest_members @ (proposal - current) - rest_alpha @ (new_log_f - log_f)
    if log_ratio >= threshold:
        accepted, current, log_f = True, proposal, new_log_f
    log_density[k] = current
    scaled[k] = np.exp(log_pi[k] + current - top)
    return accepted, log_f


def pair_terms(pair, total, log_pi, log_density, scaled, top):
    """f_i without a pair, and the pair's terms if each had all its mixture weight exp(total).

    All three (records,), each record divided by a factor of its own.
    """
    rest = log_f_without(pair, log_pi, log_density, scaled, top)
    top = np.maximum(rest, total + log_density[pair].max(axis=0))
    return np.exp(rest - top), *np.exp(total + log_density[pair] - top)


def share_log_density(x, prior_count, alpha, rest, first, second):
    """Log-density of x = log(u / (1 - u)), where u is the share of the first of a pair."""
    log_shares = -np.logaddexp(0.0, [-x, x])
    shares = np.exp(log_shares)
    log_f = np.log(rest + shares[0] * first + shares[1] * second)
    return prior_count * log_shares.sum() + alpha @ log_f
