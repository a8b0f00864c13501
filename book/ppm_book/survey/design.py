"""Response and predictors of the synthesizer of incomes (appendix B), from the table."""

import numpy as np
import pandas as pd

from ppm._validation import as_numbers, check_number, shown
from ppm_book.survey.expenditure import LABELS, ConsumerExpenditure


def predictor_matrix(table):
    """Build the predictors of the synthesizer: intercept and drop-first dummies.

    Parameters
    ----------
    table : pandas.DataFrame or ConsumerExpenditure
        With the ten categorical columns of :func:`~ppm_book.survey.load`, with no value missing.
        Other columns are ignored.

    Returns
    -------
    X : ndarray of float64, shape (n, R)
        Of full column rank.
    names : list of str
        ``"intercept"``, then ``"variable: category"`` for each dummy.

    Raises
    ------
    ValueError
        Columns absent or not categorical, missing values, no rows.

    See Also
    --------
    left_out_columns : which categories have no column, and why.

    Notes
    -----
    The predictor vector x_i of Appendix B. Within each variable the first category that occurs
    is the baseline; categories that do not occur have no column. A dummy that is a linear
    combination of the columns before it is left out, in the order of the variables and of their
    categories, so that the same table always gives the same columns.

    Examples
    --------
    >>> from ppm_book import survey
    >>> X, names = survey.predictor_matrix(survey.simulate(100, random_seed=1))
    >>> X.shape == (100, len(names)), names[0]
    (True, 'intercept')
    """
    X, names, _ = _design(table)
    return X, names


def left_out_columns(table):
    """Say which categories have no column in :func:`ppm_book.survey.predictor_matrix`, and why.

    Parameters
    ----------
    table : pandas.DataFrame or ConsumerExpenditure
        As for :func:`predictor_matrix`.

    Returns
    -------
    dict
        ``"variable: category"`` -> ``"baseline"``, ``"not observed"`` or ``"redundant"`` (a
        linear combination of columns before it).

    Raises
    ------
    ValueError
        As :func:`predictor_matrix`.

    Examples
    --------
    >>> from ppm_book import survey
    >>> data = survey.simulate(100, random_seed=1)
    >>> found = survey.left_out_columns(data)
    >>> found["gender: male"], found["family_size: 10"]
    ('baseline', 'not observed')
    """
    return _design(table)[2]


def _design(table):
    table = _checked(table, LABELS)
    columns, names, left_out = [np.ones(len(table))], ["intercept"], {}
    for name in LABELS:
        if not isinstance(table[name].dtype, pd.CategoricalDtype):
            raise ValueError(
                f"table: column {name} is not categorical; ppm_book.survey.load makes it so"
            )
        positions = table[name].cat.codes.to_numpy()
        baseline = positions.min()
        observed = set(np.unique(positions))
        for position, label in enumerate(table[name].cat.categories):
            title = f"{name}: {label}"
            if position == baseline:
                left_out[title] = "baseline"
            elif position not in observed:
                left_out[title] = "not observed"
            else:
                columns.append((positions == position).astype(np.float64))
                names.append(title)
    X = np.column_stack(columns)
    keep = _independent(X)
    left_out.update({names[j]: "redundant" for j in range(len(names)) if j not in keep})
    return np.ascontiguousarray(X[:, keep]), [names[j] for j in keep], left_out


def _independent(X):
    """Positions of the columns that are no linear combination of columns before them."""
    basis, keep = np.empty((0, len(X))), []
    for j in range(X.shape[1]):
        rest = X[:, j]
        for _ in range(2):  # the second pass removes what rounding left in
            rest = rest - basis.T @ (basis @ rest)
        size = np.linalg.norm(rest)
        if size > 1e-8 * np.linalg.norm(X[:, j]):
            basis = np.vstack([basis, rest / size])
            keep.append(j)
    return keep


def log_income(table, floor=1.0):
    """Take natural logarithms of income, with incomes below a floor set to it.

    Parameters
    ----------
    table : pandas.DataFrame or ConsumerExpenditure
        With the column ``income``, dollars.
    floor : float
        Dollars, above 0.

    Returns
    -------
    values : ndarray of float64, shape (n,)
        Log dollars: the response y_i of Appendix B.
    floored : int
        Number of incomes below the floor.

    Raises
    ------
    ValueError
        ``floor`` is not a positive number; no income column, or missing or infinite incomes.

    Notes
    -----
    The paper models the logarithm of income and does not say what became of incomes of zero or
    less. The floor is a choice of ours, and the Lipschitz bounds of these records depend on it.

    Examples
    --------
    >>> from ppm_book import survey
    >>> import pandas as pd, ppm
    >>> values, floored = survey.log_income(pd.DataFrame({"income": [-500.0, 1.0, 50_000.0]}))
    >>> values.round(2), floored
    (array([ 0.  ,  0.  , 10.82]), 1)
    """
    number = isinstance(floor, int | float | np.number) and not isinstance(floor, bool)
    if not (number and np.isfinite(floor) and floor > 0):
        raise ValueError(f"floor must be a positive number of dollars, got {shown(floor)}")
    income = _income(table)
    return np.log(np.maximum(income, floor)), int((income < floor).sum())


def power_income(table, power=0.2, unit=50_000.0):
    r"""Income on a scale without a long tail on either side: a power of its size, with its sign.

    Parameters
    ----------
    table : pandas.DataFrame or ConsumerExpenditure
        With the column ``income``, dollars.
    power : float, default 0.2
        Exponent p, above 0 and at most 1.
    unit : float, default 50000
        Dollars u, above 0, that become 1.

    Returns
    -------
    numpy.ndarray, shape (n,)
        :math:`\mathrm{sign}(y)\,|y / u|^p` for every income y.

    Raises
    ------
    ValueError
        If an argument is out of range, or there is no income column, or an income is missing or
        infinite.

    See Also
    --------
    income_from_power : the way back.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022), who take the logarithm. There an income of a few
    dollars lies as far below the others as a fortune of millions above them, and one of zero has
    no place. A mechanism with limits on every record's term cuts off what lies far out, so that a
    scale without far-out records loses less.

    Examples
    --------
    >>> from ppm_book import survey
    >>> import pandas as pd, ppm
    >>> survey.power_income(pd.DataFrame({"income": [-500.0, 0.0, 50_000.0]})).round(2)
    array([-0.4,  0. ,  1. ])
    """
    power, unit = _check_power(power, unit)
    income = _income(table)
    return np.sign(income) * np.abs(income / unit) ** power


def income_from_power(values, power=0.2, unit=50_000.0, *, lowest=None, highest=None):
    """Incomes in dollars from transformed values, kept between two public amounts.

    Parameters
    ----------
    values : array_like
        On the scale of :func:`ppm_book.survey.power_income`.
    power, unit
        As there.
    lowest, highest : float, optional
        Dollars between which incomes are kept, such as the bounds that a file's top coding makes
        public. Nothing is cut off by default. They must not come from the confidential records.

    Returns
    -------
    numpy.ndarray
        Dollars, of the same shape.

    Raises
    ------
    ValueError
        If an argument is out of range, or an amount beyond the largest number is not kept below
        ``highest`` or above ``lowest``: a small power takes values just above 1 there.

    Examples
    --------
    >>> from ppm_book import survey
    >>> survey.income_from_power([-0.5, 1.0, 3.0], highest=2_000_000.0).tolist()
    [-1562.5, 50000.0, 2000000.0]
    """
    power, unit = _check_power(power, unit)
    lowest = -np.inf if lowest is None else check_number("lowest", lowest)
    highest = np.inf if highest is None else check_number("highest", highest, above=lowest)
    values = as_numbers("values", values)
    if np.isnan(values).any():
        raise ValueError("values must be numbers without NaN")
    # what is beyond the largest number is infinite, and the limits take it back
    with np.errstate(over="ignore"):
        income = np.sign(values) * np.abs(values) ** (1.0 / power) * unit
    income = np.clip(income, lowest, highest)
    beyond = int(np.isinf(income).sum())
    if beyond:
        raise ValueError(
            f"values: {beyond} of {income.size} lie beyond the largest number in dollars at power "
            f"{shown(power)}; give lowest and highest in dollars, or a larger power"
        )
    return income


def _check_power(power, unit):
    power = check_number("power", power, above=0, at_most=1)
    return power, check_number("unit", unit, above=0)


def _income(table):
    income = as_numbers("table: column income", _checked(table, ["income"])["income"])
    if not np.isfinite(income).all():
        raise ValueError("table: column income has an infinite value")
    return income


def _checked(table, columns):
    if isinstance(table, ConsumerExpenditure):
        table = table.table
    if not isinstance(table, pd.DataFrame):
        raise ValueError(
            f"table must be a DataFrame as survey.load makes it, got {type(table).__name__}"
        )
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise ValueError(f"table has no column {', '.join(absent)}")
    if len(table) == 0:
        raise ValueError("table has no rows")
    lacking = [name for name in columns if table[name].isna().any()]
    if lacking:
        raise ValueError(f"table has missing values in {', '.join(lacking)}")
    return table
