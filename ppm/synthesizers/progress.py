"""When a fit shows its progress, and how."""

import contextlib
import multiprocessing
import shutil
import sys
from importlib.util import find_spec

# seconds that a fit takes before it shows what nobody has asked for
_SHORT = 1.0


def kernel():
    """The Jupyter kernel that this process is, or None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None)


def is_watched():
    """Whether somebody can look: at a terminal, or at an open notebook.

    Whoever asks a kernel to execute a cell says whether input can be asked for (``allow_stdin``, in
    Jupyter's protocol). It can in JupyterLab, and it cannot where a program executes the notebook,
    as papermill, nbmake and nbconvert do.
    """
    # workers of a study would all write to one terminal
    if multiprocessing.parent_process() is not None:
        return False
    if notebook := kernel():
        return bool(notebook.get_parent("shell").get("content", {}).get("allow_stdin"))
    return all(
        stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr)
    )


@contextlib.contextmanager
def progress_bar(progress, total, unit):
    """Yield a function that takes the number of steps done since its last call.

    Parameters
    ----------
    progress : bool or None
        Whether to show a bar on the error stream, which needs tqdm. By default (None) there is one
        after the first second, if tqdm is installed and somebody can see it.
    total : int
        Number of all steps.
    unit : str
        What they are called.
    """
    shown = is_watched() and find_spec("tqdm") if progress is None else progress
    if not shown:
        yield lambda steps: None
        return
    from tqdm import tqdm

    # an executed notebook keeps every state of the bar
    often, delay = 0.1 if is_watched() else 5.0, _SHORT if progress is None else 0.0
    # tqdm itself writes nothing to a terminal that does not know its size
    columns, lines = shutil.get_terminal_size()
    with tqdm(
        total=total,
        unit=f" {unit}",
        ncols=columns,
        nrows=lines,
        mininterval=often,
        delay=delay,
    ) as bar:
        yield bar.update
