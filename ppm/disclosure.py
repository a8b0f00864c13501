"""What an ε means for an attacker, and what of a run may leave the building."""

import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ppm._validation import as_numbers, check_number

__all__ = [
    "output_table", "belief_limits", "detection_limit", "release_statement", "Guarantee",
]

#: what the library produces: name, where it is found, whether it may be published, and why
OUTPUTS = (
    (
        "synthetic databases", "result.synthesize(m)", True,
        "drawn from θ and public values alone, with as many records as were fixed beforehand",
    ),
    (
        "an ε for every database",
        "result.epsilon(m) of a strict result, release_statement(strict_epsilon=…)", True,
        "follows from public constants alone: public limits of every record's term, or a public "
        "set of parameters to which the prior is restricted; and weights of the records' own",
    ),
    (
        "local ε and Δ", "result.epsilon(m) of a local result, result.local_bound", False,
        "computed from the records, and counted in no ε",
    ),
    ("weights", "result.weights", False, "one number for each record, by how rare it is"),
    ("bounds of records", "result.record_bounds", False, "the same, more directly"),
    (
        "posterior draws", "result.draws, result.unweighted", False,
        "every draw is one more release, and the unweighted fit is not protected at all",
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
        "utility and risk tables",
        "ppm.utility.compare_distributions, ppm.risk.match_risk, Sweep.table", False,
        "compare with the confidential records, outside ε",
    ),
    (
        "audits and evidence",
        "ppm.audits.exact, ppm.audits.sampled, ppm.audits.membership_test", False,
        "say what leaving out a named record would change",
    ),
    (
        "what a run leaves", "the folder of ppm run", False,
        "executed notebook, page and tables, computed from the records",
    ),
    (
        "files of PyMC", ".pytensor in your home, and the temporary folder", False,
        "a pm.sample of your own leaves the observed values in them; fits of this library do not",
    ),
    (
        "kept fits", "the folder given as fits", False,
        "hold weights, bounds and more synthetic databases than are released",
    ),
)


@dataclass(frozen=True)
class Guarantee:
    """What one release of a run promises, to whom, and what is outside it.

    Attributes
    ----------
    kind : {'strict', 'local'}
        Strict: ε holds for every database and follows from public constants alone, so that it may
        be published. Local: ε was computed from the records at hand, describes them, and stays
        inside.
    epsilon : float
        ε of what is covered, in nats.
    neighbour : str
        What a neighbour is.
    outside : tuple of str
        What ε does not cover, a sentence each.
    covered : str
        What ε covers: one release, unless something else is said.

    Examples
    --------
    >>> import ppm
    >>> mechanism = ppm.PseudoPosteriorMechanism(
    ...     ppm.GammaPoisson([3, 5, 4, 6, 20], shape=2, rate=0.4), censor=ppm.Censoring(-3, -2)
    ... )
    >>> guarantee = mechanism.run(draws=200, random_seed=1).guarantee
    >>> guarantee.kind, guarantee.epsilon
    ('strict', 1.0)
    """

    kind: str
    epsilon: float
    neighbour: str
    outside: tuple
    covered: str = "one release"

    def __str__(self):
        """Kind, ε, neighbour and what is outside, in a few lines."""
        whose = (
            "for every database"
            if self.kind == "strict"
            else "for these records and draws only, CONFIDENTIAL"
        )
        lines = [
            f"{self.kind}: epsilon {self.epsilon:.4g} for {self.covered}, {whose}",
            f"Neighbour: {self.neighbour}.",
            "Outside:",
            *(f"- {sentence}." for sentence in self.outside),
        ]
        return "\n".join(
            part for line in lines for part in textwrap.wrap(line, 84, subsequent_indent="  ")
        )


_NEIGHBOUR = (
    "the same table, with the same public number of rows and the same public columns, in which "
    "the confidential value of one record is not used"
)
_REPLACED = "; where a value is replaced by another, ε counts twice"
_UNCHANGED = "the number of records and the values that are released unchanged"
_EDITED = (
    "an answer that imputation or top-coding spread to other records: ε is about the value of a "
    "record in the edited table"
)


def strict_guarantee(epsilon, *, exact, given, gated=True):
    """What a run promises whose ε follows from public constants.

    Parameters
    ----------
    epsilon : float
        ε of one release, in nats.
    exact : bool
        Whether the draws are independent and come from no Markov chain.
    given : bool
        Whether somebody gave weights, and vouches for them.
    gated : bool, default True
        Of a Markov chain: whether a release depends on the chains' agreement.
    """
    outside = [
        "rounding: the draws are exact and independent up to floating-point arithmetic"
        if exact
        else "what a Markov chain is off: ε is that of exact, independent draws of the parameters, "
        "and those of a chain are neither, whether chains agree or not",
        "who knows or guesses the seed, or predicts the random numbers, whose generators are not "
        "made for secrets: for an actual release give no seed",
        "choices made by looking at the records: model, prior and limits must be public",
        _UNCHANGED,
        _EDITED,
    ]
    if given:
        outside.append(
            "weights that react to other records: whoever gave the weights says that each is a "
            "fixed number, or follows from its own record and public things"
        )
    if not exact:
        outside.append(
            "whether there is a release at all: it was decided by whether the fit ended without an "
            "error and the chains agreed"
            if gated
            else "whether the fit ended without an error. Apart from that the release is not gated "
            "by the records: it was decided on before the fit, on the word of whoever ran it, and "
            "the chains' agreement was not consulted"
        )
    return Guarantee("strict", epsilon, _NEIGHBOUR + _REPLACED, tuple(outside))


def local_guarantee(epsilon, *, censored, agree):
    """What a run promises whose ε was computed from the records.

    Parameters
    ----------
    epsilon : float
        Local ε of one release, in nats.
    censored : bool
        Whether the records' terms have public limits all the same.
    agree : bool
        Whether the chains agree.
    """
    outside = [
        "every other database: ε was computed from these records and a finite number of draws",
        "what one record changes through the weights of others: nobody has vouched that none "
        "reacts (fixed_weights=True), and the width of the limits is then no bound"
        if censored
        else "what one record changes through the weights of others, unless no weight reacts",
        f"choices made by looking at the records, {_UNCHANGED}",
        _EDITED,
    ]
    if not agree:
        outside.insert(0, "what the chains have not found: they disagree")
    return Guarantee("local", epsilon, _NEIGHBOUR, tuple(outside))


def histogram_guarantee(epsilon, *, secure):
    """What databases promise that were drawn from a histogram with discrete Laplace noise.

    Parameters
    ----------
    epsilon : float
        ε of the noisy counts, in nats.
    secure : bool
        Whether the noise comes from a source made for secrets.
    """
    noise = (
        "errors in the package that drew the noise"
        if secure
        else "who knows or guesses the seed: the noise can then be drawn again and taken away; for "
        "an actual release draw it with secure_noise=True"
    )
    return Guarantee(
        "strict",
        epsilon,
        _NEIGHBOUR + _REPLACED,
        (
            noise,
            "choices made by looking at the records: limits, bins and groups must be public",
            _UNCHANGED,
            _EDITED,
        ),
        "the noisy counts and any number of releases drawn from them",
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

    Examples
    --------
    >>> import ppm
    >>> table = ppm.disclosure.output_table()
    >>> list(table.index[table["may leave the building"] == "yes"])
    ['synthetic databases', 'an ε for every database']
    """
    import pandas as pd

    rows = {
        name: {"where": where, "may leave the building": "yes" if free else "no", "why": why}
        for name, where, free, why in OUTPUTS
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("output")


def belief_limits(prior, epsilon):
    r"""How far a result can move an attacker's belief that a record's value took part.

    Parameters
    ----------
    prior : float or array_like
        Probability before the result is seen, between 0 and 1.
    epsilon : float or array_like
        Privacy expenditure ε that holds for every database, 0 or more, in nats; broadcast against
        ``prior``. For the belief in one of two values of a record, give 2ε.

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
    Hu, 2022), for an attacker who knows all other records and what is public: the number of rows
    among it. The two possibilities are that a certain confidential value took part, and that none
    of this record did. Two values of one record are two such steps apart. An ε computed from one
    database, as :meth:`ppm.mechanism.MechanismResult.epsilon`, gives no such limits.

    Examples
    --------
    >>> import ppm
    >>> low, high = ppm.disclosure.belief_limits(0.5, 1.0)
    >>> round(float(high), 3)
    0.731
    """
    from scipy.special import expit, logit

    prior = _inside("prior", prior)
    epsilon = _expenditure(epsilon)
    middle = logit(prior)
    return expit(middle - epsilon), expit(middle + epsilon)


def detection_limit(false_alarms, epsilon):
    r"""Largest probability that a test detects a record's value at a rate of false alarms.

    Parameters
    ----------
    false_alarms : float or array_like
        Probability that the test says "this value took part" where it did not, between 0 and 1.
    epsilon : float or array_like
        Privacy expenditure ε that holds for every database, 0 or more, in nats; broadcast against
        ``false_alarms``.

    Returns
    -------
    float or numpy.ndarray
        Limit of the probability that it says so where the value did take part:
        :math:`\min(e^\epsilon a, 1 - e^{-\epsilon}(1 - a))` at the rate a.

    Raises
    ------
    ValueError
        If a rate is not in [0, 1], or ε is negative or NaN.

    Notes
    -----
    Differential privacy for the two sets "test says yes" and "test says no": see section 1 of
    Savitsky, Williams and Hu (2022).

    Examples
    --------
    >>> import ppm
    >>> float(ppm.disclosure.detection_limit(0.05, 1.0).round(3))
    0.136
    """
    rate = as_numbers("false_alarms", false_alarms)
    if not np.all((rate >= 0) & (rate <= 1)):
        raise ValueError("false_alarms must be probabilities in [0, 1]")
    epsilon = _expenditure(epsilon)
    with np.errstate(over="ignore", invalid="ignore"):
        up = np.exp(epsilon) * rate
    # a large ε whose exponential overflows still lets nobody be found without false alarms; an
    # infinite one promises nothing
    up = np.where(rate > 0, up, np.where(epsilon == np.inf, np.inf, 0.0))
    return np.minimum(up, -np.expm1(-epsilon) + np.exp(-epsilon) * rate)[()]


def _terms_in_words(result):
    """What was done to the likelihood of each record."""
    raised = "the likelihood of each record was raised to a weight"
    if result.censor is None:
        return f"{raised}."
    if np.all(result.weights == 1.0):
        return "the logarithm of the likelihood of each record was kept between two limits."
    return f"{raised}, and its logarithm was kept between two limits."


def release_statement(result, release, *, strict_epsilon=None):
    """A paragraph to stand beside a release: what is guaranteed, and on which conditions.

    It holds nothing that was computed from the confidential records. A local ε or Δ is not in it,
    and neither are odds, unless the result is strict or an ε is given that holds for every
    database.

    Parameters
    ----------
    result : ppm.mechanism.MechanismResult
        The run that the release was drawn from.
    release : xarray.DataArray or xarray.Dataset
        All that is published of what ``result.synthesize`` returned, from a single call: its
        attributes say how many databases were drawn, and their ε.
    strict_epsilon : float, optional
        ε of one release that holds for *every* database, above 0, in nats: from public constants
        alone, as for weights that each record determines, capped over a public set to which the
        prior is restricted. The run needs ``fixed_weights=True``. Whoever gives both vouches for
        all of that: where given weights come from, and what a prior allows, cannot be seen here.
        Not for a strict result, of a run with ``censor=``, which has its own.

    Returns
    -------
    str
        A few sentences.

    Raises
    ------
    ppm.ChainsDisagreeError
        If the chains disagree, also where their numbers were asked for all the same; but not where
        a strict result's release was decided on before the fit.
    TypeError
        If ``result`` is something else.
    ValueError
        If ``release`` is no release of this result, or a part of one, ``strict_epsilon`` is not
        above 0, or the run contradicts it: nobody said that its weights react to no other record,
        or a record's weighted log-likelihood moves by more over the draws.

    Notes
    -----
    Savitsky, Williams and Hu (2022), sections 3 and 5. That a local ε describes one database, and
    was computed from it, is the subject of their section 4.

    Examples
    --------
    >>> import ppm
    >>> mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([3, 5, 4, 6, 20]))
    >>> result = mechanism.run(draws=200, random_seed=1)
    >>> statement = ppm.disclosure.release_statement(result, result.synthesize(2, random_seed=2))
    >>> "no limit is claimed" in statement
    True
    """
    if not hasattr(result, "shown_anyway"):
        raise TypeError(
            "result must be what PseudoPosteriorMechanism.run returned; got "
            f"{type(result).__name__}"
        )
    if not result.strict:
        result = replace(result, allow_disagreement=False, shown_anyway=False)
    # asked for in any case: it is withheld where the chains disagree
    width = result.epsilon()
    told, drawn = (getattr(release, name, {}) for name in ("attrs", "sizes"))
    releases = told.get("releases", 0)
    public = releases * width if result.strict else None
    if drawn.get("release") != releases or told.get("epsilon") != public:
        raise ValueError(
            "release must be all that one call of result.synthesize() returned; got "
            f"{type(release).__name__} of another size or origin"
        )
    if result.strict:
        if strict_epsilon is not None:
            raise ValueError("strict_epsilon is for runs without limits: this one has its own")
        strict_epsilon = width
    elif strict_epsilon is not None:
        strict_epsilon = check_number("strict_epsilon", strict_epsilon, above=0)
        if not result.own_weights:
            raise ValueError(
                "strict_epsilon cannot be claimed for this run, whose weights may react to other "
                "records; accepted: runs of a mechanism with weights=… and fixed_weights=True"
            )
        if result.oscillation_bound > strict_epsilon:
            # the size of the excess stays out of the message: it is confidential
            raise ValueError(
                "strict_epsilon is contradicted by this run: over its draws a record's weighted "
                "log-likelihood moves by more than that"
            )
    many = releases > 1
    sentences = [
        f"{releases} synthetic database{'s' if many else ''} of {result.weights.size:,} records"
        f"{' each' if many else ''}, drawn from the predictions of a Bayesian model of "
        "confidential records. When the model was fitted, " + _terms_in_words(result)
    ]
    if many:
        sentences.append("Each database comes from one draw of the model's parameters.")
    if strict_epsilon is None:
        sentences += [
            "The weights were computed from all records."
            if result.unweighted is not None
            else "How the weights were obtained is for those who gave them to say.",
            "For this release no limit is claimed on what it can tell about the value of a record: "
            "the privacy expenditure that was computed describes one database and a finite number "
            "of draws, was itself computed from the confidential records, and is not published.",
        ]
    else:
        total = releases * strict_epsilon
        told = f"{releases} × {strict_epsilon:.4g} = {total:.4g}" if many else f"{total:.4g}"
        sentences += [
            f"The release is ε-differentially private with ε = {told}, for every possible "
            "database, where neighbours are tables that differ in whether one record's "
            "confidential value is used.",
            "Whoever knew all other records and gave even odds that a certain value of a record "
            f"was used, rather than none, could come to odds of up to {_power(total)} to 1; "
            f"between two values of the record, of up to {_power(2 * total)} to 1.",
            "This supposes exact and independent draws of the parameters; a seed that nobody knows "
            "or guesses; a model, a prior and a rule for the weights that were fixed without "
            "looking at the records; a weight that depends on its own record alone; and "
            + (
                "limits that were fixed in the same way."
                if result.censor is not None
                else "a prior restricted to the set over which ε was computed."
            ),
        ]
        if result.diagnostics is not None:
            sentences += [
                "The parameters were drawn by Markov chains, whose draws are neither exact nor "
                "independent.",
                "There is a release because the chains agreed, which ε does not cover."
                if result.gated
                else "That there would be a release, unless the fit ended with an error, was "
                "decided before the fit, whether or not the chains would agree.",
            ]
    sentences += [
        "The number of records, values that were released unchanged, and choices made by looking "
        "at the records are not protected.",
        "All of this is about the values of the edited table, not about an answer that imputation "
        "or top-coding spread to other records.",
    ]
    return " ".join(sentences)


def _power(epsilon):
    """e^ε in figures that can be read: 2.7, 5,200 or 10^175."""
    if epsilon < np.log(1e6):
        odds = np.exp(epsilon)
        return f"{odds:,.0f}" if odds >= 100 else f"{odds:.3g}"
    return f"10^{epsilon / np.log(10.0):.0f}"


def _inside(name, values):
    values = as_numbers(name, values)
    if not np.all((values > 0) & (values < 1)):
        raise ValueError(f"{name} must be a probability between 0 and 1, neither included")
    return values


def _expenditure(epsilon):
    epsilon = as_numbers("epsilon", epsilon)
    if not np.all(epsilon >= 0):
        raise ValueError("epsilon must be 0 or more, without NaN")
    return epsilon


# ---- files that only their owner can open ------------------------------------------------------

NOTE_FILE = "CONFIDENTIAL.txt"
_NOTE = """What lies in this folder was computed from records: {data}.

The notebook, the page, the tables and the values compare synthetic databases with
the records, or tell how rare single records are. No epsilon covers them. Keep the
folder where the records themselves may be kept, and hand nothing out of it. This is
why only their owner can read the files.

If anybody may see the records, open the folder to others: chmod -R go+rX on it.
"""


def own_folder(path):
    """Make a folder that only its owner can open, or close one that the library made before."""
    path = Path(path)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def own_file(path):
    """Make a file that only its owner can read, for somebody to fill, or close one to others."""
    path = Path(path)
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path


def leave_note(folder, data):
    """Say in a folder why it must stay.

    Parameters
    ----------
    folder : path-like
        The folder.
    data : str
        Name of the data file.
    """
    own_file(Path(folder, NOTE_FILE)).write_text(_NOTE.format(data=data), "utf-8")
