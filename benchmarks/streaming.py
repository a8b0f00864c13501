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

The blocks are the same in all rows; times are the processor's.

::

    python benchmarks/streaming.py                       some minutes, and 4 GB under /tmp
    python benchmarks/streaming.py --records 100000
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from processes import alone, peak_megabytes, seconds

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
        "log_lik",
        shape=(draws, records),
        chunks=CHUNK,
        dtype="float32",
        dimension_names=("draw", "record"),
        compressors=zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle"),
    )
    for top in range(0, draws, CHUNK[0]):
        for left in range(0, records, 10 * CHUNK[1]):
            block = (slice(top, top + CHUNK[0]), slice(left, left + 10 * CHUNK[1]))
            values = -0.9189385 - 0.5 * (response[block[1]] - mean[block[0]]) ** 2
            # eight bits of each fraction, which take half of the room on the disk
            array[block] = (values.view(np.uint32) & 0xFFFF8000).view(np.float32)


def by_numpy(folder):
    import zarr

    from ppm.scan import BLOCK

    array = zarr.open_array(Path(folder, "log_lik"), mode="r")
    tall = CHUNK[0] * max(1, BLOCK // (CHUNK[0] * CHUNK[1]))
    largest = np.full(array.shape[1], -np.inf, dtype=array.dtype)
    for top in 2 * [*range(0, array.shape[0], tall)]:
        for left in range(0, array.shape[1], CHUNK[1]):
            columns = slice(left, left + CHUNK[1])
            values = array[top : top + tall, columns].max(axis=0)
            np.maximum(largest[columns], values, out=largest[columns])


def work(row, folder):
    """Seconds and peak of one row, for a process of its own."""
    import xarray as xr

    import ppm
    from ppm.scan import scan

    log_lik = xr.open_dataset(folder, engine="zarr", consolidated=False)["log_lik"]

    def bounds():
        weights = ppm.record_weights(ppm.record_bounds(log_lik), scale=0.7)
        ppm.local_bound(log_lik, weights)

    ways = (lambda: None, lambda: by_numpy(folder), bounds, lambda: scan(log_lik))
    return seconds(ways[ROWS.index(row)])[0], peak_megabytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument(
        "--repeats", type=int, default=2, help="of every row; the best counts"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        alone(write, folder, asked.draws, asked.records)
        # in turn, so that all see the same machine
        rounds = [
            [alone(work, row, folder) for row in ROWS] for _ in range(asked.repeats)
        ]
    print(f"{asked.draws:,} draws of {asked.records:,} records in single precision")
    for row, *runs in zip(ROWS, *rounds, strict=True):
        print("{:20} {:7.2f} s {:6.0f} MB".format(row, *min(runs)))


if __name__ == "__main__":
    main()
