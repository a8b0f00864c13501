"""Releases at a strict ε: one synthesizer under public limits of several widths."""

from dataclasses import dataclass, field

import numpy as np

from ppm import pdp
from ppm._random import numbered, seed_sequence
from ppm._validation import as_list, check_count, check_number
from ppm.censoring import Censoring, censoring_limits, check_censor
from ppm.diagnostics import must_agree
from ppm.disclosure import Guarantee, strict_guarantee
from ppm.studies.kept_fits import fit_runner
from ppm.studies.risk_utility import one_response


@dataclass(frozen=True, eq=False)
class StrictEntry:
    """Releases under limits of one width: see :class:`ppm.studies.StrictReleases`."""

    censor: Censoring
    weight: float
    guarantee: Guarantee = field(repr=False)
    synthetic: np.ndarray = field(repr=False)
    oscillation: float
    diagnostics: object = field(repr=False)

    @property
    def width(self):
        """ε of one release, in nats."""
        return self.censor.width


@dataclass(frozen=True, eq=False)
class StrictReleases:
    """Releases at several strict ε, in the order of the widths.

    Attributes
    ----------
    entries : tuple
        One for each width, with the ``width`` and the limits ``censor``, the ``weight`` of every
        record, the ``guarantee`` of one release and the ``synthetic`` databases, an array
        (releases, records); and with what is confidential: ``oscillation``, the largest of a
        record's term over the draws, and ``diagnostics``, which decide nothing.

    Examples
    --------
    >>> import ppm
    >>> model, last_year = (ppm.GammaPoisson(x, shape=2, rate=0.4) for x in ([3, 5, 6], [4, 5, 8]))
    >>> reference = last_year.log_likelihood(last_year.fit(draws=500, random_seed=1))
    >>> found = ppm.studies.strict_releases(model, [0.5, 2], reference, releases=2, random_seed=1)
    >>> found.table(releases=20)["ε, 20 releases"].tolist()
    [10.0, 40.0]
    """

    entries: tuple

    def table(self, *, releases=1, delta=1e-6):
        """Limits, ε and diagnostics, one row a width.

        Parameters
        ----------
        releases : int, default 1
            The m of the columns for all releases.
        delta : float, default 1e-6
            The δ of the last column of ε, above 0 and below 1.

        Returns
        -------
        pandas.DataFrame
            By ε of one release: ``weight``, ``low`` and ``high``, and ε of m releases without and
            with δ (:func:`ppm.pdp.bounded_range_epsilon`), all public; then the largest
            ``oscillation``, R-hat and effective draws of the sum of the terms, the larger R-hat
            of the two that are followed, and whether the chains ``agree``: these look at the
            records.
        """
        import pandas as pd

        releases = check_count("releases", releases)
        delta = check_number("delta", delta, above=0)
        rows = {}
        for entry in self.entries:
            seen = entry.diagnostics
            rows[entry.width] = {
                "weight": entry.weight,
                "low": entry.censor.low,
                "high": entry.censor.high,
                f"ε, {releases} releases": pdp.bounded_range_epsilon(entry.width, releases),
                f"ε, {releases} releases, δ = {delta:g}": pdp.bounded_range_epsilon(
                    entry.width, releases, delta=delta
                ),
                "oscillation": entry.oscillation,
                "R-hat, sum of terms": seen.r_hat_log_likelihood,
                "effective draws": seen.effective_draws_log_likelihood,
                "chains agree": seen.agree,
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("ε, one release")


def strict_releases(
    synthesizer,
    widths,
    reference,
    *,
    outside=0.02,
    smooth=True,
    releases=20,
    draws=1000,
    random_seed=None,
    fits=None,
    progress=False,
):
    """Draw releases under limits of several widths that a public reference has placed.

    For every width W the public reference gives the place of the limits and one weight for all
    records (:func:`ppm.censoring.censoring_limits`). One draw of the parameters then costs ε = W,
    for every database: see :class:`ppm.Censoring` for what must be public, and what else must hold.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model, holding the confidential records; its ``fit`` takes ``censor``.
    widths : sequence of float
        Widths W above 0, in nats, at least one, and each of them once.
    reference : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihoods in nats of *public* records under the same model. **It must not
        come from the confidential table.**
    outside, smooth
        As for :func:`ppm.censoring.censoring_limits`.
    releases : int, default 20
        Synthetic databases for each width, 1 or more.
    draws : int, default 1000
        Kept draws a chain of each fit, 1 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    fits : path-like, optional
        Folder that keeps the fits, as for :func:`ppm.studies.sweep`: it is confidential.
    progress : bool, default False
        Show a progress bar on standard error.

    Returns
    -------
    StrictReleases
        One entry a width.

    Raises
    ------
    TypeError
        If ``synthesizer`` is neither a synthesizer nor a PyMC model, or its ``fit`` takes no
        ``censor``.
    ValueError
        If an argument is out of range, the model has several responses, or its fits cannot be kept.
    KeyboardInterrupt
        If interrupted; the processes end first.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). What m releases cost is for m independent draws; those
    of a chain with few effective draws are not. The stream of an entry depends on ``random_seed``
    and its own width. No release is withheld: as of :meth:`ppm.PseudoPosteriorMechanism.run` with
    ``allow_disagreement=True``, the guarantee is that of a width, a length of chains and a release
    that were decided on beforehand. Whoever chooses among widths by what the table says of the
    chains, or by comparing releases with the confidential records, does so outside ε.

    Examples
    --------
    >>> import ppm
    >>> model, last_year = (ppm.GammaPoisson(x, shape=2, rate=0.4) for x in ([3, 5, 6], [4, 5, 8]))
    >>> reference = last_year.log_likelihood(last_year.fit(draws=500, random_seed=1))
    >>> found = ppm.studies.strict_releases(model, [0.5, 2], reference, releases=2, random_seed=1)
    >>> found.table()[["weight", "oscillation"]].round(2).values.tolist()
    [[0.12, 0.36], [0.48, 1.45]]
    """
    synthesizer = one_response(synthesizer)
    widths = as_list("widths", widths).tolist()
    # a stream by the width in millionths of a nat: other widths in the list change nothing
    streams = {round(1e6 * width): width for width in widths}
    if min(widths) <= 0 or len(streams) < len(widths):
        raise ValueError("widths must be above 0, and each two of them more than 1e-6 apart")
    releases = check_count("releases", releases)
    draws = check_count("draws", draws)
    limits = [censoring_limits(w, reference, outside=outside, smooth=smooth) for w in widths]
    check_censor(synthesizer, limits[0][0])
    root = seed_sequence(random_seed)
    entries = []
    with fit_runner(
        synthesizer, fits=fits, random_seed=random_seed, progress=progress, draws=draws,
        releases=releases,
    ) as runner:
        for (stream, width), (censor, weight) in zip(streams.items(), limits, strict=True):
            runner.progress.plan("widths", (len(widths) - len(entries) - 1) * runner.sweeps())
            summary = runner.fit(
                f"ε = {width:g}", np.full(synthesizer.records, weight), numbered(root, stream),
                censor=censor,
            )
            found = summary.diagnostics
            exact = not must_agree(synthesizer, len(found.by_chain))
            guarantee = strict_guarantee(censor.width, exact=exact, given=weight < 1.0, gated=False)
            entries.append(
                StrictEntry(
                    censor, weight, guarantee, summary.releases["prior"],
                    summary.oscillation_bound, found,
                )
            )
    return StrictReleases(tuple(entries))
