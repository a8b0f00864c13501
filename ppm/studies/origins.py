"""What a result is computed from, as a hash: data, settings, seeds, code and libraries."""

import dataclasses
import dis
import functools
import hashlib
import importlib.util
import inspect
import platform
import sys
import sysconfig
import warnings
from importlib import metadata
from pathlib import Path
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)

import numpy as np

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
# what says nothing of a class beyond its functions, attributes and bases
_OF_EVERY_CLASS = {
    "__abstractmethods__", "__annotate_func__", "__annotations__", "__annotations_cache__",
    "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__", "__firstlineno__",
    "__match_args__", "__module__", "__qualname__", "__slotnames__", "__slots__",
    "__static_attributes__", "__weakref__", "_abc_impl",
}
# folders of packages: of this environment, and of those that it lies upon, as on many clusters
_SHELVES = {"site-packages", "dist-packages"}
# stands in __init__ for a default that a function of the dataclass makes
_FACTORY = getattr(dataclasses, "_HAS_DEFAULT_FACTORY", Ellipsis)


@functools.cache
def library_source(names=None):
    """Name and hash of files of the library: of all that a result may hang on, or of some.

    Parameters
    ----------
    names : tuple of str, optional
        Files and folders, as seen from the library's.
    """
    library = Path(__file__).parents[1]
    chosen = sorted(library.iterdir())
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
    """What a value says to :func:`digest_of`: each kind by its own name, functions by their code.

    The code of a function or class is known with the values of all names in it, and with the files
    of the user's modules and of all that those import. Nothing is known of files that code reads,
    of environment variables, of modules that are imported by a name found while it runs, and of
    what is set on modules and objects while it runs.

    Raises
    ------
    ValueError
        If something in it cannot be told from another of its kind.
    """
    kind = type(value)
    if isinstance(value, ModuleType):
        return ("module", value.__name__, _module(value))
    if isinstance(value, (FunctionType, type)):
        return ("code", _code(value, seen))
    if hasattr(value, "fingerprint"):
        return ("synthesizer", identity(value), content_of(kind, seen))
    if kind is np.random.SeedSequence:
        return ("seed", value)
    if dataclasses.is_dataclass(value):
        names = [
            *(entry.name for entry in dataclasses.fields(value)),
            *getattr(value, "__dict__", ()),
        ]
        parts = {name: content_of(getattr(value, name), seen) for name in names}
        return ("instance", content_of(kind, seen), parts)
    if kind is dict:
        return ("dict", [(content_of(key), content_of(part, seen)) for key, part in value.items()])
    if kind in (list, tuple):
        return (kind.__name__, [content_of(part, seen) for part in value])
    if kind in (set, frozenset):
        return (kind.__name__, sorted(digest_of(content_of(part, seen)) for part in value))
    if kind is functools.partial:
        return ("partial", content_of((value.func, value.args, value.keywords), seen))
    if kind is MethodType:
        return ("method", content_of((value.__self__, value.__func__), seen))
    if kind is slice:
        return ("slice", content_of((value.start, value.stop, value.step), seen))
    if kind in (range, complex) or value is Ellipsis or value is _FACTORY:
        return (kind.__name__, repr(value))
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return ("number", value.dtype.str, value.tobytes())
    if kind in (NoneType, bool, int, float, str, bytes):
        return value
    if kind is np.ndarray and value.dtype.kind in "biufc":
        return value
    named = _named(value)
    if named is None:
        raise ValueError(
            f"store cannot tell one {kind.__name__} from another: leave store out, or let "
            "functions use numbers, text, arrays, lists, dicts, dataclasses and other functions "
            "alone"
        )
    return ("named", named)


def _named(value):
    """Where an installed module has what no code can be seen of: a built-in, a ufunc; or None."""
    name = getattr(value, "__name__", None)
    # ufuncs do not say where they are from
    for place in (getattr(value, "__module__", None), "numpy", "scipy.special"):
        module = sys.modules.get(place) if isinstance(place, str) else None
        if module is not None and _is_installed(module) and vars(module).get(name) is value:
            return [place, name, _modules([place])]
    return None


def stands_in_a_library(named):
    """Whether an installed module has a function or class: not if it was made at run time."""
    found = module = sys.modules.get(named.__module__)
    if module is None or not _is_installed(module):
        return False
    for step in named.__qualname__.split("."):
        found = inspect.getattr_static(found, step, None)
    return _inner(found) is named


def _is_installed(module):
    """Whether a module's version says all; the library's own files are hashed all together."""
    top = module.__name__.partition(".")[0]
    if top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return True
    file = getattr(module, "__file__", None)
    return top != "__main__" and file is not None and _installed(file)


@functools.cache
def _installed(file):
    homes = [Path(__file__).parents[1]]
    homes += [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")]
    file = Path(file).resolve()
    return not _SHELVES.isdisjoint(file.parts) or any(
        file.is_relative_to(home.resolve()) for home in homes
    )


def _module(module):
    if module.__name__ == "__main__" or sys.modules.get(module.__name__) is not module:
        raise ValueError(
            "store cannot tell one module that was made while the program runs from another: "
            "leave store out, or import it from a file"
        )
    return _modules([module.__name__])


def _modules(names):
    """Versions of installed modules; hashes of other ones' files, and of all that they import."""
    found, waiting = {}, {name.partition(".")[0] for name in names}
    while waiting:
        top = waiting.pop()
        files = _own_files(top)
        found[top] = _version(top) if files is None else [file_hash(file) for file in files]
        for file in files or ():
            if file.suffix == ".py":
                waiting |= _imports_of_source(file.read_bytes())
        # a package's own files are all there
        waiting -= {".", *found}
    return sorted(found.items())


def _own_files(top):
    """Files of a module or package of the user's; None of an installed one."""
    module = sys.modules.get(top)
    if module is None:
        spec = importlib.util.find_spec(top)
        # an import that fails, which code may expect
        if spec is None:
            return []
        file, folders = spec.origin, spec.submodule_search_locations
    else:
        file, folders = getattr(module, "__file__", None), getattr(module, "__path__", None)
    if top in sys.stdlib_module_names or (file is not None and _installed(file)):
        return None
    if folders:
        # of a package anything may be imported later
        return sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    return [] if file is None else [Path(file)]


@functools.cache
def _version(top):
    if top in sys.stdlib_module_names:
        return ""
    try:
        return metadata.version(top)
    except metadata.PackageNotFoundError:
        return str(getattr(importlib.import_module(top), "__version__", ""))


@functools.cache
def _imports_of_source(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _imports(compile(source, "<a module of the user's>", "exec", dont_inherit=True))
        except (SyntaxError, ValueError):
            # nobody can import it
            return frozenset()


def _imports(code):
    """First names of what code imports, in functions as well; a dot for its own package."""
    found, steps = set(), list(dis.get_instructions(code))
    for level, _, step in zip(steps, steps[1:], steps[2:], strict=False):
        if step.opname == "IMPORT_NAME":
            found.add("." if level.argval else step.argval.partition(".")[0])
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _imports(constant)
    return frozenset(found)


def _code(function, seen):
    """Name of a function or class, and what it does if it is the user's own."""
    name = [function.__module__, function.__qualname__]
    if function in seen:
        return [*name, seen.index(function)]
    if stands_in_a_library(function):
        return [*name, _modules([function.__module__])]
    seen = (*seen, function)
    if isinstance(function, type):
        parts = [
            (key, type(part).__name__, content_of(_inner(part), seen))
            for key, part in sorted(vars(function).items())
            if key not in _OF_EVERY_CLASS
            and not isinstance(part, (MemberDescriptorType, GetSetDescriptorType))
        ]
        above = (*function.__bases__, type(function))
        return [*name, parts, [content_of(base, seen) for base in above]]
    used = {
        key: content_of(function.__globals__[key], seen)
        for key in sorted(_names(function.__code__))
        if key in function.__globals__
    }
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    kept = (function.__defaults__, function.__kwdefaults__, cells, vars(function))
    imported = {
        function.__module__ if top == "." else top for top in _imports(function.__code__)
    }
    return [*name, _bytes(function.__code__), content_of(kept, seen), used, _modules(imported)]


def _inner(part):
    """The function of a method of any kind, and those of a property."""
    if isinstance(part, property):
        return (part.fget, part.fset, part.fdel)
    return part.__func__ if isinstance(part, (classmethod, staticmethod)) else part


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
    arguments = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    return [code.co_code, code.co_exceptiontable, arguments, names, constants]
