"""What a result is computed from, as a hash: data, settings, seeds, code and libraries."""

import dataclasses
import functools
import hashlib
import inspect
import platform
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType

import numpy as np

# what no result hangs on
_BESIDE = ("publishing", "classroom", "plots.py")
# what a fit hangs on
_SOURCES = (
    "studies/kept_fits.py",
    "studies/origins.py",
    "_random.py",
    "_validation.py",
    "censoring.py",
    "diagnostics.py",
    "lipschitz.py",
    "synthesizers",
)


@functools.cache
def library_source(names=None):
    """Name and hash of files of the library: of all that a result may hang on, or of some.

    Parameters
    ----------
    names : tuple of str, optional
        Files and folders, as seen from the library's.
    """
    library = Path(__file__).parents[1]
    chosen = [path for path in sorted(library.iterdir()) if path.name not in _BESIDE]
    if names is not None:
        chosen = [library / name for name in names]
    files = []
    for path in chosen:
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path] * (path.suffix == ".py")
    return [
        (str(file.relative_to(library)), file_hash(file))
        for file in files
    ]


def file_hash(file):
    """Hash of a file's content."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


@functools.cache
def versions():
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in ("numpy", "scipy", "numba", "arviz-stats", "pymc", "pytensor"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def digest_of(value):
    """Hash of numbers, text, None, arrays of numbers, and lists, dicts and dataclasses of those."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()[:40]


def _feed(digest, value):
    """Feed a value to a hash, with its type and size, so that no two values look the same."""
    if isinstance(value, np.random.SeedSequence):
        value = {"entropy": value.entropy, "key": value.spawn_key, "pool": value.pool_size}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        digest.update(f"array {value.dtype.str} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (list, tuple)):
        digest.update(f"list {len(value)} ".encode())
        for part in value:
            _feed(digest, part)
    elif isinstance(value, dict):
        digest.update(f"dict {len(value)} ".encode())
        for name, part in value.items():
            _feed(digest, name)
            _feed(digest, part)
    elif value is None or isinstance(value, (bool, int, float, str, bytes)):
        text = repr(value)
        digest.update(f"{type(value).__name__} {len(text)} {text} ".encode())
    else:
        raise ValueError(
            f"no hash can be taken of a {type(value).__name__}; accepted in what fingerprint() "
            "returns: numbers, text, None, arrays of numbers, and lists, dicts and dataclasses"
        )


def identity(synthesizer):
    """Hash of the synthesizer, of the code that computes its fits, and of the libraries below."""
    return digest_of(
        {
            "class": _class_sources(type(synthesizer)),
            "fingerprint": synthesizer.fingerprint(),
            "library": library_source(_SOURCES),
            "versions": versions(),
        }
    )


def _class_sources(kind):
    """Names and sources of a class and its bases; a ValueError if fits of it cannot be kept."""
    advice = "leave out fits=, or give the class a method fingerprint() (see ppm.Synthesizer)"
    owner = next((c for c in kind.__mro__ if "fingerprint" in vars(c)), None)
    if owner is None:
        raise ValueError(
            f"fits of {kind.__name__} cannot be kept, because it has no fingerprint() that says "
            f"what it is made from: {advice}"
        )
    sources = []
    for base in kind.__mro__[:-1]:
        if base is owner:
            owner = None
        if owner is not None and "__init__" in vars(base):
            raise ValueError(
                f"fits of {kind.__name__} cannot be kept, because the fingerprint() it inherits "
                f"from {owner.__name__} does not know its __init__: {advice}"
            )
        source = ""
        if not base.__module__.startswith("ppm."):
            try:
                source = inspect.getsource(base)
            except (OSError, TypeError):
                raise ValueError(
                    f"fits of {kind.__name__} cannot be kept, because the source of "
                    f"{base.__name__} is not to be found: leave out fits=, or define it in a file"
                ) from None
        sources.append((base.__module__, base.__qualname__, source))
    return sources


def content_of(value, seen=()):
    """What a value says to :func:`digest_of`, functions by their code.

    Raises
    ------
    ValueError
        If something in it cannot be told from another of its kind.
    """
    if hasattr(value, "fingerprint") and not isinstance(value, type):
        return {"synthesizer": identity(value)}
    if isinstance(value, np.random.SeedSequence):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [entry.name for entry in dataclasses.fields(value)]
        return {name: content_of(getattr(value, name), seen) for name in names}
    if isinstance(value, dict):
        return {name: content_of(part, seen) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [content_of(part, seen) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted(digest_of(content_of(part, seen)) for part in value)
    if isinstance(value, functools.partial):
        return content_of(["partial", value.func, value.args, value.keywords], seen)
    if isinstance(value, MethodType):
        return content_of(["method", value.__self__, value.__func__], seen)
    if isinstance(value, ModuleType):
        return _module(value)
    if isinstance(value, (FunctionType, type)):
        return _code(value, seen)
    if inspect.isbuiltin(value) or isinstance(value, np.ufunc):
        return [getattr(value, "__module__", "") or "", value.__name__]
    if value is Ellipsis or isinstance(value, (slice, range, complex)):
        return repr(value)
    try:
        digest_of(value)
    except ValueError:
        raise ValueError(
            f"store cannot tell one {type(value).__name__} from another: leave store out, or let "
            "functions use numbers, text, arrays, lists, dicts, dataclasses and other functions "
            "alone"
        ) from None
    return value


def _module(module):
    """Name and version of an installed module, or name and hash of another one's file."""
    top = sys.modules.get(module.__name__.partition(".")[0])
    file = getattr(module, "__file__", None)
    if file is None or _installed(file):
        return [module.__name__, str(getattr(top, "__version__", ""))]
    return [module.__name__, file_hash(file)]


@functools.cache
def _installed(file):
    # the library's own files are hashed all together
    homes = [Path(__file__).parents[1]]
    homes += [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")]
    return any(Path(file).resolve().is_relative_to(home.resolve()) for home in homes)


def _code(function, seen):
    """Name of a function or class, and what it does if it is the user's own."""
    name = [function.__module__, function.__qualname__]
    module = sys.modules.get(function.__module__)
    if function in seen or function.__module__ == "builtins":
        return name
    if module is not None and _installed(getattr(module, "__file__", None) or __file__):
        if function.__module__ != "__main__":
            return [*name, _module(module)]
    seen = (*seen, function)
    if isinstance(function, type):
        parts = [
            (key, content_of(_inner(part), seen))
            for key, part in sorted(vars(function).items())
            if isinstance(_inner(part), FunctionType)
            or not (key.startswith("__") or inspect.isdatadescriptor(part))
        ]
        return [*name, parts, [content_of(base, seen) for base in function.__bases__]]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    used = {
        key: content_of(function.__globals__[key], seen)
        for key in sorted(_names(function.__code__))
        if key in function.__globals__
    }
    kept = [function.__defaults__, function.__kwdefaults__, cells]
    return [*name, _bytes(function.__code__), content_of(kept, seen), used]


def _inner(part):
    """The function of a method of any kind, and of a property that is read."""
    return getattr(part, "fget", None) or getattr(part, "__func__", part)


def _names(code):
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _bytes(code):
    constants = [
        _bytes(constant) if isinstance(constant, CodeType) else content_of(constant)
        for constant in code.co_consts
    ]
    return [code.co_code, list(code.co_names), list(code.co_varnames), constants]
