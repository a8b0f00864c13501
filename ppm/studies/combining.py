"""Combining rules: what a recipient makes of the estimates from m synthetic databases."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ppm._validation import as_numbers, check_count, check_number, check_share, shown

RULES = (
    "as real", "parameter fixed", "parameter drawn", "partially synthetic", "fully synthetic",
)


@dataclass(frozen=True, eq=False)
class CombinedEstimate:
    """An estimate from m releases, with its interval.

    Attributes
    ----------
    estimate : numpy.ndarray or float
        Average of the releases' estimates.
    variance : numpy.ndarray or float
        Its variance by the rule.
    degrees_of_freedom : numpy.ndarray or float
        Of Student's t distribution behind the interval; infinite for the normal.
    low, high : numpy.ndarray or float
        Ends of the interval.

    Examples
    --------
    >>> import ppm
    >>> found = ppm.studies.combine_releases([4.1, 3.8, 4.4], [0.04, 0.05, 0.045])
    >>> round(float(found.estimate), 2), round(float(found.variance), 3)
    (4.1, 0.075)
    """

    estimate: np.ndarray
    variance: np.ndarray
    degrees_of_freedom: np.ndarray
    low: np.ndarray
    high: np.ndarray


def combine_releases(
    estimates, variances, *, rule="partially synthetic", weight=1.0, confidence=0.95
):
    r"""Combine what an analyst computes from each of m synthetic databases.

    Parameters
    ----------
    estimates : array_like, shape (releases,) or (releases, ...)
        The estimate :math:`q_l` from every release, analysed as if it were real.
    variances : array_like, same shape
        Its estimated variance :math:`v_l`, the squared standard error, likewise; 0 or more.
    rule : str, default "partially synthetic"
        With the averages :math:`\bar q, \bar v` and the variance :math:`b` of the
        :math:`q_l` over the releases (divisor m - 1), the variance of :math:`\bar q` is

        - ``"partially synthetic"``: :math:`\bar v + b / m` (Reiter, 2003). The rule for releases of
          this library: as many records as the confidential database has, public predictors as they
          are, a draw of θ for every release.
        - ``"fully synthetic"``: :math:`(1 + 1/m)\,b - \bar v` (Raghunathan, Reiter and Rubin,
          2003): for samples from synthetic *populations*, predictors included.
        - ``"parameter drawn"``: :math:`\bar v\,(1 + (1 + 1/\alpha) / m)`: every value synthetic,
          one draw of θ a release. With α = 1 the rule of Raab, Nowok and Dibben (2016).
        - ``"parameter fixed"``: :math:`\bar v\,(1 + 1/m)` (the same): all releases from one
          estimate of θ. No release of a mechanism is made like that.
        - ``"as real"``: :math:`\bar v`, which ignores that the records are synthetic.

        The first two need two releases or more; the others do with one.
    weight : float, default 1
        For ``"parameter drawn"``: the public weight α that all records had in the fit, above 0 and
        at most 1, as :func:`ppm.censoring.censoring_limits` gives it.
    confidence : float, default 0.95
        Nominal coverage of the interval.

    Returns
    -------
    CombinedEstimate
        Estimate, variance, degrees of freedom and interval, of the shape of one release's
        estimates.

    Raises
    ------
    ValueError
        If the shapes differ, a number is not finite, a variance is negative, the rule is unknown or
        has too few releases, or ``weight`` or ``confidence`` is out of range.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). Given the confidential database, and weights that were
    computed from it, the releases of a mechanism are independent and alike. Let A be the variance
    over databases of what they average to, and B the variance among them. Then
    :math:`\mathrm{Var}(\bar q) = A + B / m`, and b estimates B without bias whatever the weights.
    The rules differ in what stands for A, and for B where it is not b.

    ``"partially synthetic"`` takes :math:`A = \bar v`. A constant weight leaves the centre of the
    pseudo posterior, and so A, about where it is, and widens B, which b sees: the rule stays right
    as long as the records, which count as :math:`\alpha n`, outweigh the prior. Limits that cut
    terms off make A larger than the same weight alone does. Where the estimate is as efficient as
    the model, as a mean is, that is larger than :math:`\bar v`; a share or a quantile has a smaller
    A, and the rule covers more than it says.
    ``"fully synthetic"`` takes :math:`A = b - \bar v`, the *posterior* variance, which a weight α
    multiplies by 1/α, and from which public predictors are missing. No rule knows of a bias.

    The interval is Student's t with :math:`(m - 1)\,(1 + \bar v m / b)^2` degrees of freedom for
    ``"partially synthetic"``, and :math:`(m - 1)\,(1 - \bar v / ((1 + 1/m) b))^2` for ``"fully
    synthetic"``, not fewer than 1 (the floor is ours). Where the latter's variance is not above 0,
    :math:`\bar v` takes its place (Reiter, 2002), with the normal distribution. The other rules use
    the normal distribution.

    Examples
    --------
    Three releases, and what each rule makes of them:

    >>> import ppm
    >>> estimates, variances = [4.1, 3.8, 4.4], [0.04, 0.05, 0.045]
    >>> for rule in ("as real", "parameter drawn", "partially synthetic", "fully synthetic"):
    ...     found = ppm.studies.combine_releases(estimates, variances, rule=rule)
    ...     print(f"{rule}: {found.low:.2f} to {found.high:.2f}")
    as real: 3.68 to 4.52
    parameter drawn: 3.56 to 4.64
    partially synthetic: 3.51 to 4.69
    fully synthetic: 0.62 to 7.58

    One release, fitted with the public weight 0.25:

    >>> found = ppm.studies.combine_releases([4.1], [0.04], rule="parameter drawn", weight=0.25)
    >>> round(float(found.variance) / 0.04, 6)
    6.0
    """
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}; got {shown(rule)}")
    weight = check_number("weight", weight, above=0, at_most=1)
    if weight < 1 and rule != "parameter drawn":
        raise ValueError(f"weight enters the rule 'parameter drawn' only; the rule is {rule!r}")
    confidence = check_share("confidence", confidence)
    estimates, variances = _checked(estimates, variances)
    releases = check_count(
        f"for the rule {rule!r}, the number of releases", len(estimates),
        at_least=2 if "synthetic" in rule else 1,
    )
    average, within = estimates.mean(axis=0), variances.mean(axis=0)
    freedom = np.full(average.shape, np.inf)
    if "synthetic" in rule:
        between = estimates.var(axis=0, ddof=1)
        # next to no variance between releases leaves infinitely many degrees of freedom
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if rule == "partially synthetic":
                variance = within + between / releases
                freedom = (releases - 1) * (1 + within * releases / between) ** 2
            else:
                outer = (1 + 1 / releases) * between
                unusable = outer <= within
                variance = np.where(unusable, within, outer - within)
                freedom = np.maximum((releases - 1) * (1 - within / outer) ** 2, 1.0)
                freedom = np.where(unusable, np.inf, freedom)
        # 0 / 0 where neither varies
        freedom = np.where(np.isnan(freedom), np.inf, freedom)
    else:
        spread = {
            "as real": 0.0, "parameter fixed": 1.0, "parameter drawn": 1.0 + 1.0 / weight
        }[rule]
        variance = within * (1.0 + spread / releases)
    half = stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(variance)
    return CombinedEstimate(average, variance, freedom, average - half, average + half)


def _checked(estimates, variances):
    estimates = as_numbers("estimates", estimates)
    variances = as_numbers("variances", variances)
    if estimates.ndim == 0 or estimates.shape != variances.shape or estimates.size == 0:
        raise ValueError(
            "estimates and variances must have the same shape, with one row a release; got "
            f"{estimates.shape} and {variances.shape}"
        )
    if not (np.isfinite(estimates).all() and np.isfinite(variances).all()):
        raise ValueError("estimates and variances must be finite")
    if (variances < 0).any():
        raise ValueError("variances must be 0 or more: they are squared standard errors")
    return estimates, variances
