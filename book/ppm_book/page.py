"""What a chapter shows and saves: ``from ppm_book import page``."""

import contextlib
import functools
import html
import inspect
import itertools
import json
import os
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

import ppm
from ppm_book.survey.expenditure import PAPER_QUARTERS, SIMULATED

# the checkout that holds this package, or the one that it is called in
_PLACES = (Path(__file__).resolve().parents[2], Path.cwd(), *Path.cwd().parents)
ROOT = next((place for place in _PLACES if (place / "_toc.yml").is_file()), _PLACES[0])
# this package, with what its chapters read
HERE = Path(__file__).parent
VALUES_FILE = "values.json"
# kind of data -> the words of the ledger and the introduction
DATA_KINDS = {
    "drawn": "data drawn by the study itself",
    "simulated": "the **simulated stand-in**, not survey data",
    "diary": "the Diary survey, where the paper has the Interview survey",
    "interview": "the Interview survey of the paper's quarter",
    "other": "survey data that are not the paper's quarter, or a part of it",
}
# says why a run's folder must stay
NOTE_FILE = "CONFIDENTIAL.txt"
_NOTE = """The contents of this folder were computed from records: {data}.

The notebook, the page, the tables and the values compare synthetic databases with
the records, or show how rare single records are. No epsilon covers them. Keep the
folder where the records themselves may be kept, and hand nothing out of it. This is
why only their owner can read the files.

If anybody may see the records, open the folder to others: chmod -R go+rX on it.
"""
# workers side by side have one thread each: then results hang on no machine's cores
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
# a cell of more letters is a sentence
_LONG = 40


def save(table, name):
    """Write a result table as CSV into the folder of the run, if there is one.

    Without the environment variable ``PPM_RESULTS``, which names that folder, nothing is written:
    somebody is reading along in the notebook.

    Parameters
    ----------
    table : pandas.DataFrame
        The table, index included in the file.
    name : str
        File name without its ending.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import page
    >>> page.save(pd.DataFrame({"Δ": [1.2345]}), "bounds")
    """
    _save(f"{name}.csv", table.to_csv())


def save_values(values, *, data):
    """Write the values that the ledger compares into the folder of the run, if there is one.

    The file is called ``values.json``, one for each chapter; what was run (profile, parameters)
    lies beside it, written by whoever ran it.

    Parameters
    ----------
    values : dict of str to dict
        Name -> ``value``, a number or several, and ``error``, their Monte Carlo standard errors, as
        ``ppm_book.ledger_values.measured`` returns them. What is not finite becomes null.
    data : ConsumerExpenditure or None
        The table that the values come from; None if the study draws its data itself.

    Examples
    --------
    >>> from ppm_book import page
    >>> page.save_values({"local bound": {"value": 3.4, "error": 0.1}}, data=None)
    """
    kind = "drawn" if data is None else data_kind(data)
    source = "drawn by the study" if data is None else data.source
    part = data is not None and data.part
    values = {
        name: {key: told if key == "doubt" else _plain(told) for key, told in entry.items()}
        for name, entry in values.items()
    }
    content = json.dumps(
        {"data": kind, "source": source, "part": part, "values": values},
        indent=1, ensure_ascii=False, allow_nan=False,
    )
    _save(VALUES_FILE, content + "\n")


def _plain(numbers):
    numbers = np.asarray(numbers, dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers.astype(object), None).tolist()


def save_text(name, markdown):
    """Write text that a page of the book includes into the folder of the run, if there is one.

    Parameters
    ----------
    name : str
        Name of the included file in ``book/``, without its ending.
    markdown : str
        The text.
    """
    _save(f"{name}.md", markdown)


def own_folder(path):
    """Make a folder that only its owner can open, or close one that was made before."""
    path = Path(path)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def own_file(path):
    """Make a file that only its owner can read, or close one to others."""
    path = Path(path)
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path


def leave_note(folder, data):
    """Say in a folder why it must stay; ``data`` is the name of the data file."""
    own_file(Path(folder, NOTE_FILE)).write_text(_NOTE.format(data=data), "utf-8")


def kept(*given):
    """Decorate a function so that a run keeps what it returns, and goes on from there after a stop.

    The file is named by a hash of the function's text, of ``given``, of the library and of the
    arguments. Of functions that it calls only those count that are in ``given``, by their text.
    Outside a run nothing is kept.

    Parameters
    ----------
    *given : object
        What the function uses besides its arguments: data, settings, a seed, functions.

    Returns
    -------
    callable
        Takes a function that returns a dict of arrays.

    Examples
    --------
    >>> from ppm_book import page
    >>> @page.kept(2022)
    ... def fit(weight):
    ...     return {"bound": 3 * weight}
    >>> fit(0.5)
    {'bound': array(1.5)}
    """

    def decorate(function):
        told = [inspect.getsource(one) if inspect.isfunction(one) else one for one in given]
        origin = joblib.hash((inspect.getsource(function), _library(), told))

        @functools.wraps(function)
        def call(*arguments):
            folder = os.environ.get("PPM_FITS")
            if folder:
                key = joblib.hash((origin, arguments))
                file = Path(folder, f"{function.__name__}-{key}.npz")
                with contextlib.suppress(FileNotFoundError):
                    with np.load(file, allow_pickle=False) as found:
                        return dict(found)
            result = {key: np.asarray(value) for key, value in function(*arguments).items()}
            if folder:
                leave_note(own_folder(folder), "the confidential file")
                part = file.with_name(f"{file.name}.{os.getpid()}.part")
                with own_file(part).open("wb") as stream:
                    np.savez(stream, allow_pickle=False, **result)
                part.replace(file)
            return result

        return call

    return decorate


@functools.cache
def _library():
    """Hash of the library's text."""
    files = sorted(Path(ppm.__file__).parent.rglob("*.py"))
    return joblib.hash([file.read_bytes() for file in files])


@functools.cache
def executor():
    """Where a chapter's tasks run: what ``ppm run --workers`` or ``--scheduler`` asked for.

    Returns
    -------
    concurrent.futures.Executor or None
        None to run them one after the other, in this process.

    Examples
    --------
    >>> from ppm_book import page
    >>> page.executor() is None
    True
    """
    if address := os.environ.get("PPM_SCHEDULER"):
        from distributed import Client

        return Client(address).get_executor()
    if workers := os.environ.get("PPM_WORKERS"):
        from joblib.externals.loky import ProcessPoolExecutor

        from ppm.synthesizers.chains import end_with_parent

        # one that holds 300 MB more than at first is replaced after its task, which is no fault
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
        # not the reusable one, in which joblib runs the chains of a fit
        return ProcessPoolExecutor(int(workers), initializer=end_with_parent, env=ONE_THREAD)
    return None


def shows(*findings, title="What this run shows", simulated=False):
    """Box of sentences that were computed from this run's own tables.

    Parameters
    ----------
    *findings : str
        A sentence each; empty ones are left out.
    title : str
        Of the box.
    simulated : bool, default False
        Whether the box must say that the data are simulated.

    Returns
    -------
    IPython.display.HTML
        What a notebook cell displays.

    Examples
    --------
    >>> from ppm_book import page
    >>> "<li>Δ falls with c.</li>" in page.shows("Δ falls with c.").data
    True
    """
    from IPython.display import HTML

    findings = [*filter(None, findings), *([SIMULATED] if simulated else [])]
    items = "".join(f"<li>{html.escape(finding)}</li>" for finding in findings)
    # no line ends between a number and its sign
    items = items.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    items = items.replace(" %", "\N{NO-BREAK SPACE}%")
    return HTML(
        f'<div class="admonition tip shows"><p class="admonition-title">{html.escape(title)}</p>'
        f"<ul>{items}</ul></div>"
    )


def text_of(*functions):
    """Text of functions of this package, shown as a cell's code is.

    Parameters
    ----------
    *functions : callable
        What a chapter shares with others and shows all the same.

    Returns
    -------
    IPython.display.Markdown
        What a notebook cell displays.

    Examples
    --------
    >>> from ppm_book import page
    >>> "def save(table, name):" in page.text_of(page.save).data
    True
    """
    from IPython.display import Markdown

    text = "\n\n".join(inspect.getsource(function) for function in functions)
    return Markdown(f"```python\n{text}```")


def data_kind(data):
    """Kind of data for the ledger: ``simulated``, ``diary``, ``interview`` or ``other``.

    ``interview`` is the paper's own sample; another quarter of that survey, a part of the sample,
    or a file that does not say its quarter is ``other``.

    Parameters
    ----------
    data : ppm_book.survey.ConsumerExpenditure
        The table.
    """
    if data.simulated:
        return "simulated"
    if data.survey == "diary":
        return "diary"
    whole = data.quarters == PAPER_QUARTERS and not data.part
    return "interview" if whole else "other"


def _save(name, text):
    """Write a file into the folder of the run, if there is one."""
    if folder := os.environ.get("PPM_RESULTS"):
        Path(folder, name).write_text(text, "utf-8")


def table(table, caption, *, digits=2, simulated=False):
    """Style a table for the page: caption, rounded numbers, and a mark if the data are simulated.

    Parameters
    ----------
    table : pandas.DataFrame
        The table to show.
    caption : str
        What to see in it.
    digits : int, default 2
        Digits after the point of every float.
    simulated : bool or str, default False
        Whether the caption must say that the data are simulated, or in which words.

    Returns
    -------
    pandas.io.formats.style.Styler
        What a notebook cell displays.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import page
    >>> styled = page.table(pd.DataFrame({"Δ": [1.2345]}), "Local bound.")
    >>> styled.caption, "1.23" in styled.to_html()
    ('Local bound.', True)
    """
    if any(name is not None for name in table.index.names):
        # named indices become columns: one row of headings, not two
        table = table.reset_index()
    plain = isinstance(table.index, pd.RangeIndex)
    styler = table.style.hide(axis="index") if plain else table.style
    styler = styler.format(precision=digits, thousands=",", na_rep="–")
    # a column that is called by a number is called as one writes it
    styler = styler.format_index(
        lambda label: f"{label:g}" if isinstance(label, float) else label, axis="columns"
    )
    right = [{"selector": "", "props": "text-align: right"}]
    wide = [{"selector": "", "props": "min-width: 11rem"}]
    styles = {column: right for column in table.select_dtypes("number")}
    # a word a line is no way to read a sentence
    styles |= {column: wide for column, cells in table.items()
               if any(isinstance(cell, str) and len(cell) > _LONG for cell in cells)}
    styler = styler.set_table_styles(styles)
    # the book's theme knows how to lay out tables of this class
    styler = styler.set_table_attributes('class="dataframe"')
    mark = SIMULATED if simulated is True else simulated or ""
    return styler.set_caption(f"{caption} {mark}".rstrip())


class _Moving:
    """A picture that a reader moves; ``book/_static/moving.js`` draws it on the page."""

    def __init__(self, content):
        self.content = content

    def __repr__(self):
        sliders = ", ".join(slider["label"] for slider in self.content["sliders"])
        return f"{self.content['title']} (in the book this can be moved: {sliders})"

    def _repr_html_(self):
        data = json.dumps(
            self.content, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        # a script element ends at the first "</script", wherever it stands
        data = data.replace("<", "\\u003c")
        return (
            f'<div class="moving"><p>{html.escape(repr(self))}</p>'
            f'<script type="application/json">{data}</script></div>'
        )


def moving(title, sliders, frame, *, panels, hint="", start=None, simulated=False):
    """Compute a picture at every place of its sliders, for a script to show without a kernel.

    Parameters
    ----------
    title : str
        What the picture shows.
    sliders : dict of str to dict of str to object
        Label of a slider, whose last word is its short name -> the words at each of its places ->
        the value there.
    frame : callable
        Takes a value of each slider and returns what is said there, and for each panel a dict of
        its ``bars``, at least 0, and of lines: ``across`` (height, words) and ``upright`` (place,
        words).
    panels : list of dict
        What stays: ``label`` above, ``names`` of the bars or the ``range`` they share, ``axis``
        below, ``outline``, ``colour``, ``height`` in pixels, and lines as above; all optional.
    hint : str, optional
        What to try.
    start : sequence, optional
        Value of each slider at first; by default its first.
    simulated : bool, default False
        Whether the hint must say that the data are simulated.

    Returns
    -------
    _Moving
        What a notebook cell displays.

    Examples
    --------
    >>> from ppm_book import page
    >>> def square(side):
    ...     return f"The area is {side**2}.", [{"bars": [side, side**2]}]
    >>> page.moving(
    ...     "A square", {"Side a": {"1 m": 1, "2 m": 2}}, square, panels=[{"names": ["a", "a²"]}]
    ... )
    A square (in the book this can be moved: Side a)
    """
    values = [list(places.values()) for places in sliders.values()]
    start = [given[0] for given in values] if start is None else start
    frames = [_as_json(frame(*place)) for place in itertools.product(*values)]
    # many places may share a frame
    unique = list(dict.fromkeys(frames))
    number = {text: index for index, text in enumerate(unique)}
    return _Moving({
        "title": title,
        "hint": f"{hint} {SIMULATED}" if simulated else hint,
        "sliders": [
            {"label": label, "shown": list(places), "at": given.index(first)}
            for (label, places), given, first in zip(sliders.items(), values, start, strict=True)
        ],
        "panels": json.loads(_as_json(panels)),
        "frames": [json.loads(text) for text in unique],
        "at": [number[text] for text in frames],
    })


def _as_json(content):
    """Text of what holds arrays, in the three digits that a picture shows."""
    return json.dumps(
        content, allow_nan=False, default=lambda array: np.round(array, 3).tolist()
    )
