"""Bounds of a log-likelihood that is larger than memory should be asked to hold.

800 draws of 200,000 records are 1.3 GB in double precision. dask makes the array block by block, and
never holds it. Printed are the processor's seconds, and the memory at the peak beyond what the
process held before:

- ``max``: dask's own maximum over the draws, the least that the bounds need.
- ``ppm.record_bounds``: the same, where values that are missing are refused.

::

    python benchmarks/streaming.py
    python benchmarks/streaming.py --records 2000000
"""

import argparse

import dask
import dask.array as da
import numpy as np
from processes import alone, peak_megabytes, seconds

import ppm

# draws and records of a block: 16 MB
BLOCK = (100, 20_000)


def dask_maximum(log_lik, weights):
    return abs(log_lik * weights).max(axis=0).compute()


WAYS = {"max": dask_maximum, "ppm.record_bounds": ppm.record_bounds}


def work(name, draws, records):
    """Seconds and megabytes above the start of one way, in a process of its own."""
    log_lik = da.random.default_rng(1).normal(size=(draws, records), chunks=BLOCK)
    weights = np.linspace(0.0, 1.0, records)
    held = peak_megabytes()
    # one thread, so that the peak does not hang on the number of cores
    with dask.config.set(scheduler="synchronous"):
        took, bounds = seconds(WAYS[name], log_lik, weights)
    assert isinstance(bounds, np.ndarray) and bounds.shape == (records,)
    return took, peak_megabytes() - held


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=800)
    parser.add_argument("--records", type=int, default=200_000)
    asked = parser.parse_args()
    whole = 8e-6 * asked.draws * asked.records
    print(f"{asked.draws:,} draws of {asked.records:,} records: {whole:,.0f} MB")
    for name in WAYS:
        took, megabytes = alone(work, name, asked.draws, asked.records)
        print(f"{name:18} {took:7.2f} s {megabytes:6.0f} MB above the start")


if __name__ == "__main__":
    main()
