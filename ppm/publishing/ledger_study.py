"""The ledger's own study of section 4: the paper's simulation many times over."""

from ppm._random import streams
from ppm._validation import check_count, shown
from ppm.publishing.ledger_values import contraction_values
from ppm.studies.contraction_study import ContractionStudy, contraction

#: the chapter whose study is repeated, with its parameters
CHAPTER = "poisson_contraction"
# the introduction of the paper speaks of this size, which its simulation does not have
_ALSO = 1000
# its rows need no more than this share of the studies, of which there are at least 10
_SHARE_ALSO = 0.2


def check_settings(settings):
    """Return the settings of the study, checked.

    Parameters
    ----------
    settings : dict
        ``studies`` (10 or more, since their scatter gives the errors), ``replicates`` (databases
        of each size in one study, 2 or more) and ``seed``.

    Raises
    ------
    ValueError
        One line on what is missing, unknown or not accepted.
    """
    least = {"studies": 10, "replicates": 2, "seed": 0}
    if not isinstance(settings, dict) or settings.keys() != least.keys():
        raise ValueError(
            f"ledger must have {', '.join(least)}, and nothing else; got {shown(settings)}"
        )
    return {name: check_count(name, settings[name], at_least=least[name]) for name in least}


def studies_at_1000(studies):
    """How many of the studies also have the size n = 1,000: the first ones."""
    return max(10, round(_SHARE_ALSO * studies))


def ledger_study(
    sizes, *, studies, replicates, seed, mean=100.0, truncate_at=3.5, draws=1000, progress=None
):
    """Repeat the simulation study and return what the ledger compares.

    One study is in memory at a time; of each, only the bounds and averages are kept.

    Parameters
    ----------
    sizes : sequence of int
        Sample sizes n, as for :func:`ppm.studies.contraction`. Some of the studies, see
        :func:`studies_at_1000`, also have n = 1,000.
    studies : int
        How many studies, 10 or more.
    replicates : int
        Databases R of each size in a study, 2 or more.
    seed : int
        Seed of everything random; every study has streams of its own.
    mean, truncate_at, draws
        As for :func:`ppm.studies.contraction`.
    progress : bool, optional
        Whether to show a bar on the error stream; by default where that is a terminal.

    Returns
    -------
    dict of str to dict
        What :func:`ppm.publishing.contraction_values` returns, with statements on the smallest and
        largest bound averaged over the studies, and two values at n = 1,000 for each mechanism.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 4, the simulation study and the end of section 1.
    """
    import xarray as xr
    from tqdm import tqdm

    check_settings({"studies": studies, "replicates": replicates, "seed": seed})
    every = sorted({*sizes, _ALSO})
    few = studies_at_1000(studies)
    seeds = streams(seed, studies)
    hidden = None if progress is None else not progress
    parts = [
        contraction(
            every if number < few else sizes, replicates=replicates, mean=mean,
            truncate_at=truncate_at, draws=draws, random_seed=child,
        ).dataset
        for number, child in enumerate(tqdm(seeds, desc="Studies for the ledger", disable=hidden))
    ]

    def values_of(parts, chosen):
        dataset = xr.concat([part.sel(size=chosen) for part in parts], "replicate")
        study = ContractionStudy(dataset, truncate_at, mean, draws)
        return contraction_values(study, studies=len(parts))

    values = values_of(parts, list(sizes))
    near = values_of(parts[:few], [n for n in every if n <= _ALSO])
    for mechanism in parts[0]["mechanism"].values:
        span, ratio = "range of bounds", "largest over smallest bound"
        values[f"{mechanism}: {span} up to n = {_ALSO:,}"] = near[f"{mechanism}: {span}"]
        entry = near[f"{mechanism}: {ratio}"]
        last = {key: entry[key][-1] for key in ("value", "error")}
        values[f"{mechanism}: {ratio} at n = {_ALSO:,}"] = {**entry, **last}
    return values
