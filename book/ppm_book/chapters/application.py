"""What the chapters on incomes share."""

import numpy as np

from ppm_book.chapters.agreement import agrees

# a component can collapse onto more equal incomes than this: 17 did no harm, 24 did
EQUAL = 15


def apart(response, low, random_seed):
    """Responses in which many equal incomes at the low end are no longer equal.

    Where more than `EQUAL` units with low incomes share one response, as those raised to a floor
    may, each of them is moved down by up to 0.1, at random and on its own.
    Whether they are moved depends on how many there are, so that no strict ε can rest on them.

    Parameters
    ----------
    response : numpy.ndarray, shape (n,)
        Incomes as the model takes them.
    low : numpy.ndarray of bool, shape (n,)
        Units at the floor or below it.
    random_seed : int
        Source of randomness.

    Returns
    -------
    numpy.ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from ppm_book.chapters import application
    >>> few, many = np.zeros(3), np.zeros(30)
    >>> [np.unique(application.apart(one, one == 0, 1)).size for one in (few, many)]
    [1, 30]
    """
    _, which, counts = np.unique(response, return_inverse=True, return_counts=True)
    shift = 0.1 * np.random.default_rng(random_seed).random(len(response))
    return response - np.where(low & (counts[which] > EQUAL), shift, 0.0)


def diagnosed(result):
    """What is held against the chains of a fit, as a row of a table."""
    of_chains = result.diagnostics
    return {
        "Δ": result.local_bound,
        "smallest Δ of a chain": min(of_chains.by_chain),
        "typical draw": of_chains.typical,
        "R-hat": of_chains.r_hat,
        "R-hat, log-likelihood": of_chains.r_hat_log_likelihood,
        "effective draws": of_chains.effective_draws,
        "chains agree": agrees(result),
    }


def median(values):
    """Median over releases; and its standard error, NaN for a single release."""
    again = np.random.default_rng(0).choice(values, (1000, len(values)))
    error = np.median(again, axis=1).std() if len(values) > 1 else np.nan
    return np.median(values), error


def typical(errors):
    """Median size of the releases' errors; and its standard error."""
    return median(np.abs(errors))
