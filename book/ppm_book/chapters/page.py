"""What a chapter shows and saves: ``from ppm_book import page``."""

import contextlib
import functools
import inspect
import itertools
import json
import os
import re
import runpy
import typing
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from ppm_book.chapters.sentences import NUMBER, of_claims
from ppm_book.chapters.style import COLOURS
from ppm_book.chapters.survey.expenditure import PAPER_QUARTER

VALUES_FILE = "values.json"
# a module for each chapter that claims something
CLAIMS = Path(__file__).with_name("claims")
# kind of output that brings claims to the builder
CLAIMS_TYPE = "application/vnd.ppm.claims+json"
# what is said of sentences that do not hold, and of those that a run cannot tell
UNTRUE = {False: "Not in this run, or not surely", None: "This run cannot tell"}
# kind of data -> the words of the ledger and the introduction
DATA_KINDS = {
    "drawn": "data drawn by the study itself",
    "diary": "the Diary survey, where the paper has the Interview survey",
    "interview": "the Interview survey of the paper's quarter",
    "other": "survey data that are not the paper's quarter, or a part of it",
}
# a difference is sure, and a row of the ledger decided, by so many standard errors
SURE = 2.0
# a cell of more letters is a sentence, and one of fewer a value
_LONG, _SHORT = 40, 12


def save(table, name):
    """Write a result table as CSV into the folder of the run, if there is one.

    The environment variable ``PPM_RESULTS`` names that folder. Without it, the command
    ``papermill chapter.ipynb out.ipynb`` has its tables in ``out_results`` beside ``out.ipynb``, which
    only their owner can open. Elsewhere nothing is written: somebody is reading along in Jupyter.

    Parameters
    ----------
    table : pandas.DataFrame
        The table, index included in the file.
    name : str
        File name without its ending.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book.chapters import page
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
        ``ppm_book.chapters.ledger_values.measured`` returns them. What is not finite becomes null.
    data : ConsumerExpenditure or None
        The table that the values come from; None if the study draws its data itself.

    Examples
    --------
    >>> from ppm_book.chapters import ledger_values, page
    >>> page.save_values({"local bound": ledger_values.measured(3.4, 0.1)}, data=None)
    """
    about = {"data": "drawn", "source": "drawn by the study", "part": False}
    if data is not None:
        about = {"data": data_kind(data), "source": data.source, "part": data.part}

    def plain(array):
        return np.where(np.isfinite(array), array.astype(object), None).tolist()

    content = json.dumps(
        about | {"values": values},
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
        default=plain,
    )
    _save(VALUES_FILE, content + "\n")


class _Claims(dict):
    """Names of claims, and whether each holds in this run; None: it cannot tell.

    ``words`` are their sentences, of those that are known.
    """

    def __init__(self, told, words):
        super().__init__(told)
        self.words = words

    def __repr__(self):
        lines = [
            f"{sum(map(bool, self.values()))} of {len(self)} claims of the text hold in this run."
        ]
        for holds, heading in UNTRUE.items():
            words = [self.words.get(name, name) for name in self if self[name] is holds]
            # a sentence may claim two things
            listed = [f"- {each}" for each in dict.fromkeys(words)]
            lines += [f"{heading}:", *listed] if listed else []
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_):
        return {CLAIMS_TYPE: dict(self), "text/plain": repr(self)}


def check_claims(chapter, names, sentences=None):
    """Say which sentences of a chapter hold in this run, and give its text its numbers.

    A sentence that a run could contradict has a mark behind it, such as ``<!--claim: rose-->``, and
    a condition of that name in the table ``CLAIMS`` of ``ppm_book/chapters/claims/CHAPTER.py``. The
    table ``NUMBERS`` there has the numbers that the text takes by ``{glue:text}``. Each entry is a
    function, and what it needs are its arguments, by the names that the notebook gives them. What
    several entries need is computed by a function of the module, whose name they ask for.

    At the book's own settings a condition that fails, or that cannot be computed, stops the build.
    In a run with other parameters the page says at its top which sentences do not hold, and marks
    each of them. Without a page, as after plain papermill, this cell's output has these sentences, and
    a table of the numbers. No condition ends a run: if one raises an error or warns, as the maximum of no
    records does, the run cannot tell. A number that cannot be computed becomes a dash.

    Parameters
    ----------
    chapter : str
        Name of the notebook, whose last cell calls this.
    names : dict of str to object
        What the notebook defines: ``globals()``.
    sentences : dict of str to str, optional
        The sentence of each claim, as a text has it that is not the source; by default they are those
        of the source, with the numbers of this run.

    Examples
    --------
    With entries such as ``"rose": lambda risen: risen == ["F", "G"]`` and
    ``"fell": lambda bounds: bounds[-1] < bounds[0]``, where a condition is None if the run cannot
    tell, and where there is noise true beyond two standard errors:

    >>> from ppm_book.chapters import page
    >>> page.check_claims("eight_households", globals())  # doctest: +SKIP
    27 of 28 claims of the text hold in this run.
    Not in this run, or not surely:
    - To the fit F is an ordinary household.
    """
    from IPython.display import display

    # read anew each time, as whoever writes a chapter changes it
    module = runpy.run_path(str(CLAIMS / f"{chapter}.py"))

    @functools.cache
    def value(name):
        made = module.get(name)
        if inspect.isfunction(made):
            return computed(made)
        if name not in names:
            raise NameError(f"neither the notebook nor its claims have {name}")
        return names[name]

    def computed(function):
        needed = inspect.signature(function).parameters.values()
        return function(
            **{one.name: value(one.name) for one in needed if one.default is one.empty}
        )

    def tried(name, function, kind):
        """What an entry returns, as this kind of value; None if it cannot, or cannot tell."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = computed(function)
                return None if found is None else kind(found)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")

    told = {name: tried(name, holds, bool) for name, holds in module["CLAIMS"].items()}
    numbers = {
        name: tried(name, number, str)
        for name, number in module.get("NUMBERS", {}).items()
    }
    display(_Claims(told, sentences or _sentences(chapter, numbers)))
    for name, text in numbers.items():
        if text:
            glue(name, text)
    if numbers:
        shown = pd.DataFrame(
            {"number in the text": numbers.keys(), "here": numbers.values()}
        )
        shown = shown.fillna("–")
        bundle = {
            "text/plain": shown.to_string(index=False),
            "text/html": shown.to_html(index=False),
        }
        display(bundle, raw=True)


def _sentences(chapter, numbers):
    """The sentence of each claim of a chapter, with the numbers of this run, if it has the source."""
    from ppm_book.chapters import running

    file = running.ROOT / "notebooks" / f"{chapter}.ipynb"
    if not file.is_file():
        return {}

    def with_numbers(words):
        words = NUMBER.sub(lambda role: numbers.get(role[1]) or "–", words)
        # of a reference its label
        return re.sub(r"\{[\w:]+\}(?=`)", "", words)

    return {claim: with_numbers(words) for claim, words in of_claims(file).items()}


class _Refused(TypeError):
    """A parameter of another type, told in one line."""

    def _render_traceback_(self):
        return [f"TypeError: {self}"]


def check_parameters(names):
    """Refuse a parameter that is not of the type which the parameters cell gives it.

    papermill passes on what it is given: a list that is given by ``-p`` comes as text, whose letters
    a chapter would take for its numbers. (``ppm run`` checks the range too, before it starts.)

    Parameters
    ----------
    names : dict of str to object
        What the notebook defines: ``globals()``. The cell after its parameters calls this.

    Raises
    ------
    TypeError
        If one is of another type.

    Examples
    --------
    >>> from ppm_book.chapters import page
    >>> cell = {"__annotations__": {"sizes": list[int]}}
    >>> page.check_parameters(cell | {"sizes": [50, 200]})
    >>> try:
    ...     page.check_parameters(cell | {"sizes": "[50, 200]"})
    ... except TypeError as error:
    ...     print(error)
    sizes must be list[int], and str was given; papermill takes a list by -y 'sizes: […]'
    """
    for name, kind in names.get("__annotations__", {}).items():
        if not _is(names[name], kind):
            wanted = kind.__name__ if isinstance(kind, type) else kind
            told = (
                f"{name} must be {wanted}, and {type(names[name]).__name__} was given"
            )
            if typing.get_origin(kind) is list:
                told += f"; papermill takes a list by -y '{name}: […]'"
            raise _Refused(told)


def _is(value, kind):
    """Whether a value is of a type such as int or list[float]; a whole number is a float."""
    if typing.get_origin(kind) is list:
        (inner,) = typing.get_args(kind)
        return isinstance(value, list) and all(_is(each, inner) for each in value)
    accepted = (int, float) if kind is float else kind
    return isinstance(value, accepted) and not isinstance(value, bool)


def surely_less(one, other):
    """Whether one number is less than another by more than two standard errors of the difference.

    A chapter asks it of every comparison that has noise in it, and so does the ledger.

    Parameters
    ----------
    one, other : pair of float or array_like
        A number and its standard error: 0 for what is exact. With NaN nothing is sure.

    Returns
    -------
    bool or array of bool

    Examples
    --------
    >>> import numpy as np
    >>> from ppm_book.chapters import page
    >>> page.surely_less((3.0, 0.1), (np.array([3.2, 3.5]), 0.1))
    array([False,  True])
    """
    (low, its_error), (high, error) = one, other
    return high - low > SURE * np.hypot(its_error, error)


def glue(name, text):
    """Give the chapter's prose a number, as ``{glue:text}`` of myst-nb takes it.

    What myst-nb itself has for this takes a second to import.

    Parameters
    ----------
    name, text : str
        What the prose calls it by, and the number.
    """
    from IPython.display import display

    prefix = "application/papermill.record/"
    about = {"scrapbook": {"name": name, "mime_prefix": prefix}}
    display({f"{prefix}text/plain": repr(text)}, raw=True, metadata=about)


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
    >>> from ppm_book.chapters import page
    >>> "def save(table, name):" in page.text_of(page.save).data
    True
    """
    from IPython.display import Markdown

    text = "\n\n".join(inspect.getsource(function) for function in functions)
    return Markdown(f"```python\n{text}```")


def data_kind(data):
    """Kind of data for the ledger: ``diary``, ``interview`` or ``other``.

    ``interview`` is the paper's own sample; another quarter of that survey, a part of the sample,
    or a file that does not say its quarter is ``other``.

    Parameters
    ----------
    data : ppm_book.chapters.survey.ConsumerExpenditure
        The table.
    """
    if data.survey != "interview":
        return data.survey
    whole = set(data.quarter) == {PAPER_QUARTER} and not data.part
    return "interview" if whole else "other"


def _save(name, text):
    """Write a file into the folder of the run, if there is one."""
    folder = os.environ.get("PPM_RESULTS") or _beside_papermill()
    if folder:
        Path(folder).mkdir(mode=0o700, exist_ok=True)
        Path(folder, name).write_text(text, "utf-8")


def _beside_papermill():
    """Folder of the tables, if the command papermill started this process; else None.

    papermill tells a notebook nothing of where it writes. Its command line does.
    """
    import psutil

    # it may have ended, or be another user's
    with contextlib.suppress(psutil.Error, AttributeError):
        command = psutil.Process().parent()
        words = command.cmdline()
        notebooks = [word for word in words if word.endswith(".ipynb")]
        if "papermill" in [Path(word).name for word in words] and len(notebooks) == 2:
            out = Path(command.cwd(), notebooks[1])
            return out.with_name(f"{out.stem}_results") if out.parent.is_dir() else None
    return None


def table(table, caption, *, digits=2):
    """Style a table for the page: caption and rounded numbers.

    Parameters
    ----------
    table : pandas.DataFrame
        The table to show.
    caption : str
        What to see in it.
    digits : int, default 2
        Digits after the point of every float.

    Returns
    -------
    pandas.io.formats.style.Styler
        What a notebook cell displays.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book.chapters import page
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
        lambda label: f"{label:g}" if isinstance(label, float) else label,
        axis="columns",
    )
    right = [{"selector": "", "props": "text-align: right"}]
    wide = [{"selector": "", "props": "min-width: 11rem"}]
    styles = {column: right for column in table.select_dtypes("number")}
    # 85 (66) is one thing, and a word a line is no way to read a sentence
    whole = [{"selector": "", "props": "white-space: nowrap"}]
    for place, (column, cells) in enumerate(table.items()):
        longest = max((len(cell) for cell in cells if isinstance(cell, str)), default=0)
        if longest > _LONG:
            styles[column] = wide
        # the names of rows may break
        elif place and 0 < longest < _SHORT:
            styles[column] = whole
    styler = styler.set_table_styles(styles)
    # the book's theme knows how to lay out tables of this class
    styler = styler.set_table_attributes('class="dataframe"')
    return styler.set_caption(caption)


def moving(title, sliders, frame, *, panels, hint="", start=None):
    """Compute a picture at every place of its sliders, for a script to show without a kernel.

    ``book/_static/moving.js`` draws it on the page. Without the script, as in a notebook or on
    paper, its start stands there as a still picture.

    Parameters
    ----------
    title : str
        What the picture shows.
    sliders : dict of str to dict of str to object
        Label of a slider, whose last word is its short name -> the words at each of its places ->
        the value there. At most eight places without a digit become buttons.
    frame : callable
        Takes a value of each slider and returns what is said there, and for each panel a dict of
        what it draws: its ``bars``, at least 0, with an ``outline`` of others; or ``lines``, dicts
        of ``y``, ``x``, and optionally ``words`` at the end, ``colour``, ``dashed``; and
        ``dots``, dicts of ``at`` (place, height), ``words``, and optionally ``colour``; the words
        stand above, unless ``below`` or ``aside``. Across everything go lines: ``across`` (height,
        words), or a list of these, and ``upright`` (place, words).
    panels : list of dict
        What stays: ``label`` above, ``names`` of the bars or the ``range`` they or the lines
        share, ``axis`` below, with ``ticks`` (place, words), the most important first, if these
        are not to be numbers, ``colour`` of the bars, ``height`` in pixels, ``plain`` to leave out
        the scale of the height; and anything of a frame. All are optional. A colour is a name
        from ``ppm_book.chapters.style.COLOURS``.
    hint : str, optional
        What to predict and try.
    start : sequence, optional
        Value of each slider at first; by default its first.

    Returns
    -------
    IPython.display.HTML
        What a notebook cell displays; its attribute ``content`` has the frames.

    Examples
    --------
    >>> from ppm_book.chapters import page
    >>> def square(side):
    ...     return f"The area is {side**2}.", [{"bars": [side, side**2]}]
    >>> picture = page.moving(
    ...     "A square", {"Side a": {"1 m": 1, "2 m": 2}}, square, panels=[{"names": ["a", "a²"]}]
    ... )
    >>> picture.content["frames"][1]
    ['The area is 4.', [{'bars': [2, 4]}]]
    """
    from IPython.display import HTML

    from ppm_book.chapters import still

    values = [list(places.values()) for places in sliders.values()]
    start = [given[0] for given in values] if start is None else start
    frames = [_as_json(frame(*place)) for place in itertools.product(*values)]
    # many places may share a frame
    number = {text: index for index, text in enumerate(dict.fromkeys(frames))}
    content = {
        "title": title,
        "hint": hint,
        "sliders": [
            {"label": label, "shown": list(places), "at": given.index(first)}
            for (label, places), given, first in zip(
                sliders.items(), values, start, strict=True
            )
        ],
        "panels": _read(_as_json(panels)),
        "frames": [_read(text) for text in number],
        "at": [number[text] for text in frames],
    }
    for place, panel in enumerate(content["panels"]):
        panel["heights"] = still.heights(
            panel, *(now[place] for _, now in content["frames"])
        )
    at = [slider["at"] for slider in content["sliders"]]
    first = content["at"][np.ravel_multi_index(at, [len(given) for given in values])]
    places = [
        f"{slider['label'].split()[-1]} = {slider['shown'][slider['at']]}"
        for slider in content["sliders"]
    ]
    said, now = content["frames"][first]
    fallback = still.element(
        still.figure(content["panels"], now),
        title,
        f"{', '.join(places)}: {said}",
        f"choose other values: {'; '.join(sliders)}",
    )
    picture = HTML(f'<div class="moving">{fallback}{as_script(content)}</div>')
    picture.content = content
    return picture


def as_script(content):
    """Element with data for a script of the page."""
    data = json.dumps(
        content, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    # a script element ends at the first "</script", wherever it stands
    data = data.replace("<", "\\u003c")
    return f'<script type="application/json">{data}</script>'


def _as_json(content):
    """Text of what holds arrays, in the three digits that a picture shows."""
    return json.dumps(
        content, allow_nan=False, default=lambda array: np.round(array, 3).tolist()
    )


def _read(text):
    """What the text holds, with the names of colours as colours."""

    def coloured(found):
        return found | (
            {"colour": COLOURS[found["colour"]]} if "colour" in found else {}
        )

    return json.loads(text, object_hook=coloured)
