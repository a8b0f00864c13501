"""An answer on its way from a student's kernel to the checks, as plain data.

`tell` runs in the kernel, after the student's cells. Only numbers and text come out of it, so that
nothing of the student's runs where answers are checked.
"""

import contextlib
import json

import numpy as np
from IPython.display import publish_display_data


def tell(space, variable):
    """Show what the name of an answer stands for, and the student's name, as JSON."""
    # the line Chapter(…, student="…"), or that of the assessment
    name = getattr(space.get("check"), "student", space.get("student", ""))
    # whole, because data follow from it: a group may have many names
    told = {"student": str(name)}
    try:
        text = json.dumps(told | {"answer": plain(space.get(variable))})
    except Exception:
        # an object that refuses to be an array, a list that holds itself
        text = json.dumps(told | {"answer": {"type": type(space[variable]).__name__}})
    publish_display_data({"text/plain": text})


def plain(value):
    """An answer as numbers, texts and lists; of what else there is, the type alone.

    >>> plain(np.ones(2)), plain({"b", "a"}), plain(...)
    ([1.0, 1.0], {'set': ['a', 'b']}, None)
    """
    if value is None or value is ...:
        return None
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(map(str, value))}
    if not callable(value):
        array = np.asarray(value)
        if array.dtype.kind in "biufU" or array.dtype.kind == "O" and array.ndim:
            return plain(array.tolist())
        if array.dtype.kind == "O":
            # a fraction, or a number of another library
            with contextlib.suppress(Exception):
                return float(value)
    return {"function": True} if callable(value) else {"type": type(value).__name__}


def restored(data):
    """What the checks see of an answer that `plain` made."""
    if isinstance(data, list):
        return [restored(entry) for entry in data]
    if not isinstance(data, dict):
        return data
    if "set" in data:
        return set(data["set"])
    return len if "function" in data else type(str(data.get("type")), (), {})()
