"""How a run works: where it lies, its processes, and what it keeps for its owner alone."""

import contextlib
import functools
import inspect
import linecache
import os
import shutil
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import joblib

# the checkout that holds this package, or that the command is called in
ROOT = Path(__file__).resolve().parents[3]
ROOT = ROOT if (ROOT / "_toc.yml").is_file() else Path.cwd()
# says why a run's folder must stay
NOTE_FILE = "CONFIDENTIAL.txt"
# runs tasks as an executor does, but one after the other
HERE = SimpleNamespace(map=map)
# of kernels and workers: one thread each, so that results do not depend on the number of cores; and
# Linux's C library keeps an array's memory for the next one, which saves a part of the time
PROCESS = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")},
    **dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(2**28)),
}


def digest(*paths):
    """One hash of files, or of all files in folders, with their names in these.

    Of a folder, claims do not count: they say what holds of a chapter's results, and change none.
    """
    return joblib.hash(
        [
            (str(file.relative_to(path)), file.read_bytes())
            for path in map(Path, paths)
            for file in sorted([path, *path.rglob("*")])
            if file.is_file()
            and not {"__pycache__", "claims"} & {*file.relative_to(path).parts}
            and not file.name.startswith(".")
        ]
    )


@contextlib.contextmanager
def own_kernel(**variables):
    """Let notebooks run in this interpreter, whatever kernels of its name lie on the machine.

    Yields a temporary folder, which is gone afterwards. ``variables`` are set in the environment of
    the kernels, besides those that each has.
    """
    from ipykernel.kernelspec import write_kernel_spec

    with tempfile.TemporaryDirectory() as place:
        write_kernel_spec(Path(place, "kernels", "python3"))
        # of several paths Jupyter takes the first one that has the kernel
        paths = {"JUPYTER_PATH": place, "IPYTHONDIR": place}
        with patch.dict(os.environ, paths | PROCESS | variables):
            yield Path(place)


def leave_note(folder, data):
    """Say in a folder why it must stay; ``data`` is the name of the data file."""
    note = Path(__file__).with_name("confidential.jinja").read_text("utf-8")
    Path(folder, NOTE_FILE).write_text(note.replace("{{ data }}", data), "utf-8")


def kept(*given):
    """Decorate a function so that a run keeps what it returns, and goes on from there after a stop.

    The file is named by a hash of the function's text, of ``given``, of the arguments and of the
    text of `ppm` and of the book's package. Of other functions that it calls only those count that are in
    ``given``, by their text, and of a rule of one's own the text of its cell or file. Outside a run
    results stay in memory only.

    Parameters
    ----------
    *given : object
        What the function uses besides its arguments: data, settings, a seed, functions.

    Examples
    --------
    >>> from ppm_book.chapters import running
    >>> @running.kept(2022)
    ... def bound(weight):
    ...     return 3 * weight
    >>> bound(0.5)
    1.5
    """

    def decorate(function):
        texts = [
            inspect.getsource(one) if inspect.isfunction(one) else one for one in given
        ]
        own = [*_of_own_rules(given)]
        origin = joblib.hash((inspect.getsource(function), _packages(), texts, own))
        in_memory = {}

        @functools.wraps(function)
        def call(*arguments, **options):
            own = [*_of_own_rules([*arguments, *options.values()])]
            key = joblib.hash((origin, arguments, options, own))
            if key not in in_memory:
                in_memory[key] = _from_file(key, function, arguments, options)
            return in_memory[key]

        return call

    return decorate


def _of_own_rules(values):
    """The text of the cell or file of each rule of one's own: a hash of a rule has its name alone."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from _of_own_rules(value)
        elif inspect.isfunction(getattr(type(value), "terms", None)):
            if type(value).__module__.partition(".")[0] not in ("ppm", "ppm_book"):
                yield linecache.getlines(type(value).terms.__code__.co_filename)
            # one that it builds on
            yield from _of_own_rules(vars(value).values())


def _from_file(key, function, arguments, options):
    """What a run's folder of fits holds by this key, or what the function returns."""
    folder = os.environ.get("PPM_FITS")
    if not folder:
        return function(*arguments, **options)
    # a build removes those of other code
    file = Path(folder, _packages(), f"{function.__name__}-{key}.joblib")
    if file.exists():
        return joblib.load(file)
    result = function(*arguments, **options)
    # only their owner opens the folder, and what is moved out of it
    for place in file.parents[1::-1]:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.chmod(0o700)
    leave_note(folder, "the confidential file")
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    part.touch(mode=0o600)
    joblib.dump(result, part)
    part.replace(file)
    return result


def forget_fits(folder):
    """Remove the fits that were kept by other code, which no run can go on from."""
    for old in Path(folder).glob("*/"):
        if old.name != _packages():
            shutil.rmtree(old)


@functools.cache
def _packages():
    """Hash of the library and of the book's package."""
    # found, not imported, because that takes a second
    return digest(Path(find_spec("ppm").origin).parent, Path(__file__).parents[1])


@functools.cache
def executor():
    """Where a chapter's tasks run: what ``ppm run --workers`` or ``--scheduler`` asked for.

    Returns
    -------
    concurrent.futures.Executor
        Or, if nothing was asked for, an object whose ``map`` runs them one after the other in this
        process.

    Examples
    --------
    >>> from ppm_book.chapters import running
    >>> list(running.executor().map(abs, [-1, 2]))
    [1, 2]
    """
    if address := os.environ.get("PPM_SCHEDULER"):
        from distributed import Client

        return Client(address).get_executor()
    if (workers := int(os.environ.get("PPM_WORKERS") or 1)) > 1:
        from joblib.externals.loky import ProcessPoolExecutor

        from ppm.models.mixture.chains import end_with_parent

        # one that holds 300 MB more than at first is replaced after its task, which is no fault
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
        # not the reusable one, in which joblib runs the chains of a fit
        return ProcessPoolExecutor(workers, initializer=end_with_parent, env=PROCESS)
    return HERE
