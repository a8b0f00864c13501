"""Running the chains of a sampler in parallel."""

import multiprocessing
import os
import threading
import time

from joblib import Parallel, cpu_count, delayed
from tqdm import tqdm

from ppm.seeds import one_thread

# seconds that a chain runs between two reports; sending its state takes a small part of that
PIECE = 1.0


def run_chains(chains, *, parallel):
    """Run chains to their end, with a bar, and return the kept draws of each.

    Parameters
    ----------
    chains : list
        Objects with a method ``sweep()``, which returns a draw to keep or None, and with the number
        of sweeps that are ``left``. In parallel they are sent to other processes and back.
    parallel : bool
        Whether to use other processes, which joblib keeps for the next fit. The draws are the same
        either way.
    """
    # a process that is itself a worker starts no others, and shares its terminal
    is_worker = multiprocessing.parent_process() is not None
    workers = 1 if is_worker or not parallel else min(len(chains), cpu_count())
    kept = [[] for _ in chains]
    sweeps = sum(chain.left for chain in chains)
    bar = tqdm(total=sweeps, unit=" sweeps", delay=PIECE, disable=is_worker or None)
    # arrays go through pipes: by default joblib writes large ones, with the records, into a file
    with bar, Parallel(workers, max_nbytes=None, initializer=end_with_parent) as run:
        while left := sum(chain.left for chain in chains):
            pieces = run(delayed(_piece)(chain) for chain in chains)
            chains = [chain for chain, _ in pieces]
            for draws, (_, new) in zip(kept, pieces, strict=True):
                draws += new
            bar.update(left - sum(chain.left for chain in chains))
    return kept


def end_with_parent():
    """Have a worker, which may hold records, end soon after the process that started it was killed."""
    threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end():
    # an orphan gets another parent
    while os.getppid() == multiprocessing.parent_process().pid:
        time.sleep(PIECE)
    os._exit(1)


def _piece(chain):
    """Run a chain for a while: its new state, and the draws to keep."""
    until, draws = time.monotonic() + PIECE, []
    with one_thread():
        while chain.left:
            draw = chain.sweep()
            if draw is not None:
                draws.append(draw)
            if time.monotonic() > until:
                break
    return chain, draws
