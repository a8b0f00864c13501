"""Response and predictors of the synthesizer of incomes (appendix B), from the table."""

import numpy as np
import pandas as pd

from ppm.checks import as_list, as_numbers, check_number
from ppm_book.chapters.survey.expenditure import LABELS, ConsumerExpenditure


def predictor_matrix(table):
    """Build the predictors of the synthesizer: intercept and drop-first dummies.

    Parameters
    ----------
    table : pandas.DataFrame or ConsumerExpenditure
        With the ten categorical columns of :func:`~ppm_book.chapters.survey.load`, none of them with
        missing values. Other columns are ignored.

    Returns
    -------
    X : ndarray of float64, shape (n, R)
        Of full column rank.
    names : list of str
        ``"intercept"``, then ``"variable: category"`` for each dummy.

    Notes
    -----
    The predictor vector x_i of Appendix B. Within each variable the first category that occurs
    is the baseline; categories that do not occur have no column. A dummy that is a linear
    combination of the columns before it is left out, in the order of the variables and of their
    categories, so that the same table always gives the same columns.

    Examples
    --------
    >>> from ppm_book.chapters import survey
    >>> X, names = survey.predictor_matrix(survey.load())
    >>> X.shape, len(names), names[0]
    ((5658, 36), 36, 'intercept')
    """
    table = table.table if isinstance(table, ConsumerExpenditure) else table
    unfit = [
        name
        for name in LABELS
        if name not in table
        or table[name].isna().any()
        or not isinstance(table[name].dtype, pd.CategoricalDtype)
    ]
    if unfit:
        raise ValueError(
            "table must have categorical columns without missing values, as "
            f"ppm_book.chapters.survey.load makes them; not so: {', '.join(unfit)}"
        )
    occurring = table[[*LABELS]].apply(
        lambda column: column.cat.remove_unused_categories()
    )
    dummies = pd.get_dummies(
        occurring, prefix_sep=": ", drop_first=True, dtype=np.float64
    )
    dummies.insert(0, "intercept", 1.0)
    names, X = list(dummies), dummies.to_numpy()
    # of whole numbers, and so without rounding
    products = X.T @ X
    keep = []
    for j in range(len(names)):
        tried = [*keep, j]
        gram = products[np.ix_(tried, tried)]
        # far above rounding, and far below what a column of its own adds
        if np.linalg.matrix_rank(gram, hermitian=True, rtol=1e-10) == len(tried):
            keep = tried
    return np.ascontiguousarray(X[:, keep]), [names[j] for j in keep]


def log_income(income, floor=1.0):
    """Take natural logarithms of income, with incomes below a floor raised to it.

    Parameters
    ----------
    income : array_like, shape (n,)
        Dollars.
    floor : float
        Dollars, above 0.

    Returns
    -------
    values : ndarray of float64, shape (n,)
        Log dollars: the response y_i of Appendix B.
    floored : int
        Number of incomes below the floor.

    Notes
    -----
    The paper does not say what became of incomes of zero or less. The floor is our choice, and the
    Lipschitz bounds of these records depend on it.

    Examples
    --------
    >>> from ppm_book.chapters import survey
    >>> values, floored = survey.log_income([-500.0, 1.0, 50_000.0])
    >>> values.round(2), floored
    (array([ 0.  ,  0.  , 10.82]), 1)
    """
    floor = check_number("floor", floor, above=0)
    income = as_list("income", income)
    return np.log(np.maximum(income, floor)), int((income < floor).sum())


def power_income(income, power=0.2, unit=50_000.0):
    r"""Income on a scale without a long tail on either side: a power of its size, with its sign.

    Parameters
    ----------
    income : array_like, shape (n,)
        Dollars.
    power : float, default 0.2
        Exponent p, above 0 and at most 1.
    unit : float, default 50000
        Dollars u, above 0, that become 1.

    Returns
    -------
    numpy.ndarray, shape (n,)
        :math:`\mathrm{sign}(y)\,|y / u|^p` for every income y.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022), who take the logarithm. There an income of a few
    dollars lies as far below the others as a fortune of millions lies above them, and zero has no
    place. A mechanism with limits on every record's term clips what lies far out, so a scale
    without far-out records loses less.

    Examples
    --------
    >>> from ppm_book.chapters import survey
    >>> survey.power_income([-500.0, 0.0, 50_000.0]).round(2)
    array([-0.4,  0. ,  1. ])
    """
    power, unit = _check_power(power, unit)
    income = as_list("income", income)
    return np.sign(income) * np.abs(income / unit) ** power


def income_from_power(values, power=0.2, unit=50_000.0, *, lowest=None, highest=None):
    """Incomes in dollars from values of :func:`ppm_book.chapters.survey.power_income`.

    Parameters
    ----------
    values : array_like
        Any shape.
    power, unit
        As for :func:`ppm_book.chapters.survey.power_income`.
    lowest, highest : float, optional
        Dollars between which incomes are kept, such as the bounds that a file's top coding makes
        public. They must not come from the confidential records.

    Returns
    -------
    numpy.ndarray
        Dollars, of the same shape; without limits infinite where no number is as large.

    Examples
    --------
    >>> from ppm_book.chapters import survey
    >>> survey.income_from_power([-0.5, 1.0, 3.0], highest=2_000_000.0).tolist()
    [-1562.5, 50000.0, 2000000.0]
    """
    power, unit = _check_power(power, unit)
    lowest = -np.inf if lowest is None else check_number("lowest", lowest)
    highest = (
        np.inf if highest is None else check_number("highest", highest, above=lowest)
    )
    values = as_numbers("values", values)
    if np.isnan(values).any():
        raise ValueError("values must be numbers without NaN")
    # a small power takes values just above 1 beyond the largest number; the limits take them back
    with np.errstate(over="ignore"):
        income = np.sign(values) * np.abs(values) ** (1.0 / power) * unit
    return np.clip(income, lowest, highest)


def _check_power(power, unit):
    power = check_number("power", power, above=0, at_most=1)
    return power, check_number("unit", unit, above=0)
