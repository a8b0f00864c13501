"""Bounds, weights and Δ of a log-likelihood that is larger than memory should be asked to hold.

2,000 draws of 1,000,000 records, in single precision, lie in a zarr store in a temporary folder; in
memory they would take 8 GB, and 16 GB in double precision. Each row below is a process of its own,
with its peak of memory and its time:

- ``import``: only what all the others import.
- ``max, twice``: zarr's own reading, and NumPy's maximum by record of each block; as often as the
  row below reads the store.
- ``bounds, weights, Δ``: ``ppm.record_bounds``, ``ppm.record_weights``, ``ppm.local_bound``.
- ``once, with draws``: one reading that keeps bounds, oscillations, and the largest value and the
  total of every draw, which R-hat and a tail bound are made of: what the mechanism does with a fit.

The blocks are the same in all rows. Then the arithmetic alone: the same blocks over and over from
memory, without any reading.

::

    python benchmarks/streaming.py                       some minutes, and 4 GB under /tmp
    python benchmarks/streaming.py --records 100000
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from processes import alone, peak_megabytes

# draws and records of a chunk: 4 MB
CHUNK = (100, 10_000)
ROWS = ("import", "max, twice", "bounds, weights, Δ", "once, with draws")


def write(folder, draws, records):
    """A store of normal log-likelihoods, written chunk by chunk."""
    import zarr

    rng = np.random.default_rng(1)
    mean = rng.normal(0.0, 0.1, (draws, 1)).astype(np.float32)
    response = rng.standard_normal(records).astype(np.float32)
    group = zarr.open_group(folder, mode="w")
    array = group.create_array(
        "log_lik", shape=(draws, records), chunks=CHUNK, dtype="float32",
        dimension_names=("draw", "record"),
        compressors=zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle"),
    )
    for top in range(0, draws, CHUNK[0]):
        for left in range(0, records, 10 * CHUNK[1]):
            block = (slice(top, top + CHUNK[0]), slice(left, left + 10 * CHUNK[1]))
            values = -0.9189385 - 0.5 * (response[block[1]] - mean[block[0]]) ** 2
            # eight bits of each fraction, which take half of the room on the disk
            array[block] = (values.view(np.uint32) & 0xFFFF8000).view(np.float32)


def work(row, folder):
    """Seconds and peak of one row, and what it found, for a process of its own."""
    import xarray as xr
    import zarr

    import ppm
    from ppm.lipschitz import BLOCK, read_once

    log_lik = xr.open_dataset(folder, engine="zarr", consolidated=False)["log_lik"]
    begin, found = time.perf_counter(), 0.0
    if row == "max, twice":
        array = zarr.open_array(Path(folder, "log_lik"), mode="r")
        tall = CHUNK[0] * max(1, BLOCK // (CHUNK[0] * CHUNK[1]))
        draws = [slice(top, top + tall) for top in range(0, array.shape[0], tall)]
        columns = [slice(a, a + CHUNK[1]) for a in range(0, array.shape[1], CHUNK[1])]
        for _ in range(2):
            largest = np.full(array.shape[1], -np.inf, dtype=array.dtype)
            for part in draws:
                for some in columns:
                    values = array[part, some].max(axis=0)
                    np.maximum(largest[some], values, out=largest[some])
        found = float(largest.max())
    elif row == "bounds, weights, Δ":
        weights = ppm.record_weights(ppm.record_bounds(log_lik), scale=0.7)
        found = ppm.local_bound(log_lik, weights)
    elif row == "once, with draws":
        found = float(read_once(log_lik, np.ones(log_lik.sizes["record"])).total.max())
    return time.perf_counter() - begin, peak_megabytes(), found


def arithmetic(shape=(400, 40_000), repeats=15):
    """Seconds for the same blocks from memory: NumPy's maximum, and the library's bounds."""
    import ppm

    values = -np.random.default_rng(1).exponential(size=shape).astype(np.float32)
    blocks = [values[top : top + CHUNK[0]] for top in range(0, shape[0], CHUNK[0])]
    largest = np.zeros(shape[1], dtype=np.float32)

    def plain():
        for block in blocks:
            np.maximum(largest, block.max(axis=0), out=largest)

    found = []
    for function in (plain, lambda: ppm.record_bounds(values)):
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            function()
            times.append(time.perf_counter() - begin)
        found.append(min(times))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=2, help="of every row; the best counts")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        alone(write, folder, asked.draws, asked.records)
        # in turn, so that all see the same machine
        rounds = [[alone(work, row, folder) for row in ROWS] for _ in range(asked.repeats)]
    print(f"{asked.draws:,} draws of {asked.records:,} records: "
          f"{4e-9 * asked.draws * asked.records:.2f} GB in single precision")
    best = {row: min(runs) for row, *runs in zip(ROWS, *rounds, strict=True)}
    for row, (seconds, peak, _) in best.items():
        print(f"{row:20} {seconds:7.2f} s {peak:6.0f} MB")
    print(f"speed beside NumPy's maximum: {best[ROWS[1]][0] / best[ROWS[2]][0]:.2f}")
    plain, bounds = alone(arithmetic)
    print(f"the same without reading: {plain / bounds:.2f}")


if __name__ == "__main__":
    main()
