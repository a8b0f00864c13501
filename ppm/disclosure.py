"""What an ε means for an attacker, and what of a run may leave the building."""

import numpy as np

from ppm._validation import check_count, check_number

#: what the library produces: name, where it is found, whether it may be published, and why
OUTPUTS = (
    (
        "synthetic databases", "result.synthesize(m)", True,
        "drawn from θ and public values alone; they cost m · 2Δ",
    ),
    (
        "ε and Δ with S and m", "result.epsilon(m), result.local_bound", False,
        "computed from the records, outside ε; publish a figure that was fixed beforehand, "
        "or decide to accept the leak and say so",
    ),
    ("weights", "result.weights", False, "one number for each record, by how rare it is"),
    ("bounds of records", "result.record_bounds", False, "the same, more directly"),
    (
        "posterior draws", "result.draws, result.unweighted", False,
        "every draw costs 2Δ, and the unweighted fit is not protected at all",
    ),
    (
        "log-likelihoods", "synthesizer.log_likelihood(fit)", False,
        "a function of each record's confidential value",
    ),
    (
        "diagnostics", "result.diagnostics", False,
        "R-hat, effective draws and spread describe the confidential fit",
    ),
    (
        "seeds", "random_seed", False,
        "with the seed of a release its noise can be drawn again and taken away",
    ),
    (
        "utility and risk tables", "ppm.compare_distributions, ppm.match_risk, Sweep.table", False,
        "compare with the confidential records, outside ε",
    ),
    (
        "audits and evidence", "ppm.exact_audit, ppm.sampled_audit, ppm.membership_test", False,
        "say what leaving out a named record would change",
    ),
    (
        "kept fits", "the folder given as fits", False,
        "hold weights, bounds and more synthetic databases than are released",
    ),
)


def output_table():
    """What the library produces, and what of it is meant to be published.

    Returns
    -------
    pandas.DataFrame
        One row an output: ``where`` to find it, ``may leave the building``, and ``why``.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, release synthetic data only.
    """
    import pandas as pd

    rows = {
        name: {"where": where, "may leave the building": "yes" if free else "no", "why": why}
        for name, where, free, why in OUTPUTS
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("output")


def belief_limits(prior, epsilon):
    r"""How far a result can move an attacker's belief that a record took part.

    Parameters
    ----------
    prior : float or array_like
        Probability before the result is seen, between 0 and 1.
    epsilon : float or array_like
        Privacy expenditure ε, 0 or more, in nats; broadcast against ``prior``.

    Returns
    -------
    low, high : float or numpy.ndarray
        The least and the largest probability afterwards.

    Raises
    ------
    ValueError
        If a probability is not inside (0, 1), or ε is negative or NaN.

    Notes
    -----
    Bayes' rule with a likelihood ratio between :math:`e^{-\epsilon}` and :math:`e^{\epsilon}`,
    which is what the definition of differential privacy says (section 1 of Savitsky, Williams and
    Hu, 2022), for an attacker who knows all other records.

    Examples
    --------
    >>> import ppm
    >>> low, high = ppm.belief_limits(0.5, 1.0)
    >>> round(float(high), 3)
    0.731
    """
    from scipy.special import expit, logit

    prior = _inside("prior", prior)
    epsilon = _expenditure(epsilon)
    middle = logit(prior)
    return expit(middle - epsilon), expit(middle + epsilon)


def detection_limit(false_alarms, epsilon):
    r"""Largest share of participants that a test can detect at a rate of false alarms.

    Parameters
    ----------
    false_alarms : float or array_like
        Probability that the test says "took part" of somebody who did not, between 0 and 1.
    epsilon : float or array_like
        Privacy expenditure ε, 0 or more, in nats; broadcast against ``false_alarms``.

    Returns
    -------
    float or numpy.ndarray
        Limit of the probability that it says so of somebody who did:
        :math:`\min(e^\epsilon a, 1 - e^{-\epsilon}(1 - a))` at the rate a.

    Raises
    ------
    ValueError
        If a rate is not in [0, 1], or ε is negative or NaN.

    Notes
    -----
    Differential privacy for the two sets "test says yes" and "test says no": see section 1 of
    Savitsky, Williams and Hu (2022).
    """
    rate = np.asarray(false_alarms, dtype=np.float64)
    if not np.all((rate >= 0) & (rate <= 1)):
        raise ValueError("false_alarms must be probabilities in [0, 1]")
    epsilon = _expenditure(epsilon)
    with np.errstate(over="ignore", invalid="ignore"):
        up = np.where(rate > 0, np.exp(epsilon) * rate, 0.0)
    return np.minimum(up, -np.expm1(-epsilon) + np.exp(-epsilon) * rate)[()]


def release_statement(result, releases):
    """A paragraph to stand beside a release: what is guaranteed, and on which conditions.

    The figures in it were computed from confidential records. Whether they may be printed is a
    decision of the agency, which the paragraph names.

    Parameters
    ----------
    result : ppm.MechanismResult
        The run behind the release.
    releases : int
        Number m of synthetic databases, 1 or more.

    Returns
    -------
    str
        A few sentences.

    Raises
    ------
    ppm.ChainsDisagreeError
        If the chains disagree, so that ε is not known.
    ValueError
        If ``releases`` is not a whole number of at least 1.

    Notes
    -----
    Savitsky, Williams and Hu (2022), sections 3 and 5.
    """
    releases = check_count("releases", releases)
    epsilon, bound = result.epsilon(releases), result.local_bound
    removed = int(np.count_nonzero(result.weights == 0))
    origin = (
        "The weights were computed from all records, where the theorem asks that each depends on "
        "its own record only."
        if result.unweighted is not None
        else "The weights were given; whether each depends on its own record only is for whoever "
        "gave them to say."
    )
    return " ".join(
        (
            f"{releases} synthetic database{'s' if releases > 1 else ''} of "
            f"{result.weights.size:,} records each, drawn from a pseudo posterior with "
            f"weights of {result.weights.mean():.2f} on average (records of weight 0: "
            f"{removed:,}).",
            f"Local Lipschitz bound {bound:.3g} nats, the largest over {result.draws_used:,} draws "
            f"of the parameters; ε = 2 × {bound:.3g} × {releases} = {epsilon:.3g}.",
            f"Somebody who knew all other records and gave even odds that a person is among these "
            f"could come to odds of up to {_power(epsilon)} to 1.",
            "This ε is local: it describes this database and these draws, and was itself computed "
            "from confidential records.",
            origin,
            "Values that were released unchanged, and choices made by looking at the records, are "
            "not in ε.",
        )
    )


def _power(epsilon):
    """e^ε in figures that can be read: 2.7, 5,200 or 10^175."""
    if epsilon < np.log(1e6):
        odds = np.exp(epsilon)
        return f"{odds:,.0f}" if odds >= 100 else f"{odds:.3g}"
    return f"10^{epsilon / np.log(10.0):.0f}"


def _inside(name, values):
    values = np.asarray(values, dtype=np.float64)
    if not np.all((values > 0) & (values < 1)):
        raise ValueError(f"{name} must be a probability between 0 and 1, neither included")
    return values


def _expenditure(epsilon):
    if np.ndim(epsilon) == 0 and epsilon != np.inf:
        return check_number("epsilon", epsilon, at_least=0)
    epsilon = np.asarray(epsilon, dtype=np.float64)
    if not np.all(epsilon >= 0):
        raise ValueError("epsilon must be 0 or more, without NaN")
    return epsilon
