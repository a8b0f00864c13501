"""A study of PyMC fits with 1, 2 and 4 processes and on a local Dask cluster: time, same table.

Run it with ``python benchmarks/studies_on_engines.py``; it needs PyMC and distributed. The tests
compare the same tables for one PyMC model on Dask, and for the Gamma-Poisson model everywhere.
"""

import os
import time

import numpy as np
from distributed import Client, LocalCluster

import ppm
from ppm.studies.engine import WORKERS

SIZES, REPLICATES = [50, 100], 3


def simulate(n, random_seed):
    return np.random.default_rng(random_seed).poisson(100, n)


def model(counts):
    import pymc as pm

    with pm.Model() as found:
        rate = pm.Gamma("rate", 0.001, 0.001, initval=100.0)
        pm.Poisson("y", rate, observed=counts)
    return ppm.PyMCSynthesizer(found, chains=2, warmup=300)


def study(**where):
    start = time.perf_counter()
    found = ppm.studies.contraction_by_fits(
        simulate, model, SIZES, replicates=REPLICATES, draws=300, random_seed=1, **where
    )
    return found.dataset, time.perf_counter() - start


def main():
    """Print a line for each engine, and whether its table is that of one process."""
    first = None
    for workers in (1, 2, 4):
        os.environ[WORKERS] = str(workers)
        table, seconds = study()
        first = table if first is None else first
        print(f"{workers} processes: {seconds:6.1f} s, same table: {table.identical(first)}")
    del os.environ[WORKERS]
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        table, seconds = study(executor=client.get_executor())
    print(f"Dask, 2 workers: {seconds:6.1f} s, same table: {table.identical(first)}")


if __name__ == "__main__":
    main()
