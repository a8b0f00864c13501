"""A chapter's cells, run here for the tests: without a kernel, and so in seconds."""

import contextlib
import io
from types import SimpleNamespace
from unittest.mock import patch

import nbformat
import numpy as np
import pandas as pd
from conftest import ROOT
from scipy import stats

import ppm
from ppm_book.chapters import agreement, application, page, plots


def _cells(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def cell_of(name, words):
    """Text of the one cell of a chapter that has these words."""
    (text,) = [cell.source for cell in _cells(name) if words in cell.source]
    return text


def of_chapter(name):
    """What a chapter's cells with the tag ``function`` define."""
    names = {}
    for cell in _cells(name):
        if "function" in cell.metadata.get("tags", ()):
            exec(cell.source, names)
    return SimpleNamespace(**names)


def run_chapter(name, upto=None, without=(), **given):
    """What a chapter's cells define, to the last or to one with these words.

    Cells with some of the words ``without`` are left out. Parameters are the book's own, but for
    those given. Of the result ``printed`` is what the cells printed, and ``displayed`` what they
    displayed, such as the claims.
    """
    names, displayed, printed = {"__name__": "__main__"}, [], io.StringIO()
    with (
        patch("IPython.display.display", lambda one, **_: displayed.append(one)),
        contextlib.redirect_stdout(printed),
    ):
        for cell in _cells(name):
            if any(words in cell.source for words in without):
                continue
            exec(compile(cell.source, f"<{name}>", "exec"), names)
            if "parameters" in cell.metadata.get("tags", ()):
                names |= given
            if upto and upto in cell.source:
                break
    return SimpleNamespace(
        **names | {"printed": printed.getvalue(), "displayed": displayed}
    )


def known_fit(delta, weights=(1.0, 0.5), **more):
    """What cells read of a fit, each number another one."""
    read = {
        "error": delta / 50,
        "typical": delta / 2,
        "by_chain": np.array([0.7, 1.0]) * delta,
        "r_hat": 1 + delta / 1000,
        "r_hat_log_likelihood": 1 + delta / 500,
        "effective_draws": 10 * delta,
        "divergences": None,
        "faults_besides_r_hat": (),
        "agree": True,
    }
    return SimpleNamespace(
        local_bound=delta,
        oscillation_bound=1.5 * delta,
        weights=np.array(weights),
        terms=ppm.Terms(np.array(weights)),
        diagnostics=SimpleNamespace(**read),
        epsilon=lambda m=1: 2 * m * delta,
        **more,
    )


def after(chapter, *words, **names):
    """Names after the cells with these words, one after the other.

    Of the result ``tables`` are those that the cells show, with their ``captions``, ``saved``
    those that they save, by name, ``figures`` those that they draw, and ``violins`` the groups
    of each panel with violins.
    """
    tables, captions, saved, figures, violins = [], [], {}, [], []

    def shown(table, caption, **_):
        tables.append(table)
        captions.append(caption)

    a_page = SimpleNamespace(
        table=shown,
        save=lambda table, name: saved.update({name: table}),
        save_values=lambda values, **_: saved.update(values=values),
        surely_less=page.surely_less,
    )

    def panels(*some, **options):
        figure, axes = plots.panels(*some, **options)
        figures.append(figure)
        return figure, axes

    def kept(axes, groups, **options):
        violins.append((groups, options))
        plots.violins(axes, groups, **options)

    names = {
        "np": np,
        "pd": pd,
        "ppm": ppm,
        "stats": stats,
        "page": a_page,
        "agreement": agreement,
        "application": application,
        "plots": SimpleNamespace(**vars(plots) | {"panels": panels, "violins": kept}),
    } | names
    for of_cell in words:
        exec(cell_of(chapter, of_cell), names)
    names |= {"tables": tables, "captions": captions, "saved": saved}
    return SimpleNamespace(**names | {"figures": figures, "violins": violins})
