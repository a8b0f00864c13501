"""What the mechanism costs beside two plain fits of the same PyMC model.

The mechanism fits a model twice, without and with weights, and computes every record's
log-likelihood at all draws in between. Beside it stands ``pm.sample``, called twice with the same
draws, warm-up, chains and acceptance probability; everything else is PyMC's default, its check of
the chains among it. Its sampler is PyMC's own, whatever other one is installed.

Every run has a process of its own and an empty folder for what PyTensor compiles. ``cold`` is the
first run in it, ``warm`` the second: of the same model by ``pm.sample``, of the same mechanism.
Imports count for neither. The runs of a round follow each other in alternating order, and what is
told is the median over the rounds of the ratio within one, of processor time.

Run it with ``python benchmarks/mechanism.py [--rounds 5] [--draws 1000]``.
"""

import argparse
import tempfile

import numpy as np
from processes import alone, seconds

TARGET_ACCEPT = 0.9


def worker(way, records, draws):
    """Seconds of the processor, cold and warm, of one way to fit a regression."""
    import arviz  # noqa: F401
    import pymc as pm

    import ppm

    if way == "mechanism":
        # imports PyMC's part of the library, after which nothing that is compiled is kept in files
        _ = ppm.PyMCModel
    rng = np.random.default_rng(7)
    X = rng.normal(size=(records, 3))
    with pm.Model() as model:
        mean = pm.Normal("intercept", 0.0, 10.0) + X @ pm.Normal(
            "slopes", 0.0, 5.0, shape=3
        )
        y = 1.0 + X @ [0.5, -0.3, 0.2] + rng.normal(size=records)
        pm.Normal("y", mean, pm.HalfNormal("sigma", 2.0), observed=y)
    made = []

    def mechanism():
        # the first run pays for copying and compiling the model
        made or made.append(ppm.PyMCModel(model, target_accept=TARGET_ACCEPT))
        ppm.fit(made[0], ppm.ByRisk(), draws=draws, random_seed=1)

    def plain():
        for seed in (1, 2):
            pm.sample(
                draws,
                tune=1000,
                chains=2,
                cores=1,
                random_seed=seed,
                nuts_sampler="pymc",
                target_accept=TARGET_ACCEPT,
                progressbar=False,
                quiet=True,
                model=model,
            )

    return [seconds(plain if way == "plain" else mechanism)[0] for _ in range(2)]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=3000)
    parser.add_argument(
        "--draws", type=int, default=1000, help="kept draws of each chain"
    )
    asked = parser.parse_args()
    ratios = []
    for number in range(asked.rounds):
        spent = {}
        for way in ("plain", "mechanism")[:: 1 if number % 2 == 0 else -1]:
            with tempfile.TemporaryDirectory() as folder:
                spent[way] = np.array(
                    alone(
                        worker,
                        way,
                        asked.records,
                        asked.draws,
                        OMP_NUM_THREADS="1",
                        OPENBLAS_NUM_THREADS="1",
                        PYTHONWARNINGS="ignore",
                        PYTENSOR_FLAGS=f"base_compiledir={folder}",
                    )
                )
        ratios.append(spent["mechanism"] / spent["plain"])
    low, middle, high = np.quantile(ratios, (0, 0.5, 1), axis=0)
    for row, state in enumerate(("cold", "warm")):
        print(
            f"mechanism/plain {state}  {middle[row]:5.2f} ({low[row]:.2f} to {high[row]:.2f})"
        )


if __name__ == "__main__":
    main()
