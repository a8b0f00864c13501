"""A study at equal bounds whose numbers are given."""

import numpy as np
import xarray as xr

from ppm_book.equal_bound_study import COMPARED, MECHANISMS, EqualBoundStudy

LOG, ASINH = "logarithm, floored", "inverse hyperbolic sine"
PAIRS = ((1, LOG), (2, LOG), (2, ASINH), (10, LOG))


def equal_bound_study(off, pairs=PAIRS, *, error=0.1, bounds=(80.0, 10.0, 10.2), repeats=3):
    """Every statistic of every combination is ``off`` by mechanism: as given, or by combination.

    Two settings, (0.7, 0) and (0.5, -0.3); the second one's bounds are half as large.
    """
    off = np.broadcast_to(np.asarray(off, dtype=np.float64), (len(pairs), len(MECHANISMS)))
    shape = (len(pairs), repeats, 2, len(MECHANISMS))
    full = np.broadcast_to(off[:, None, None, :, None], (*shape, len(COMPARED))).copy()
    bound = np.ones(shape)
    bound[..., : len(bounds)] = bounds
    bound[:, :, 1, 1:] /= 2.0
    dims = ("combination", "repeat", "setting", "mechanism")
    r_hat = np.ones(shape)
    dataset = xr.Dataset(
        {
            "local_bound": (dims, bound),
            "error": (dims, 0.01 * bound),
            "r_hat": (dims, r_hat),
            "r_hat_log_likelihood": (dims, r_hat.copy()),
            "average_weight": (dims, np.full(shape, 0.5)),
            "misfit": (dims, np.full(shape, 2.0)),
            "off": ((*dims, "statistic"), full),
            "off_error": ((*dims, "statistic"), np.full(full.shape, error)),
            "average_off": ((*dims, "statistic"), full.copy()),
            "spread": ("statistic", np.full(len(COMPARED), 1.5)),
        },
        {
            "components": ("combination", [k for k, _ in pairs]),
            "transformation": ("combination", [name for _, name in pairs]),
            "setting": ["(0.7, 0)", "(0.5, -0.3)"],
            "mechanism": list(MECHANISMS),
            "statistic": list(COMPARED),
        },
    )
    return EqualBoundStudy(dataset, releases=20, draws=400)
