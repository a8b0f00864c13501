"""Notebooks: the contract of their parameters, and what a run leaves behind.

That the notebooks themselves run is tested by nbmake, which `make test` lets collect them.
"""

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import (
    FIGURE,
    ROOT,
    chapter,
    checking_cell,
    code,
    is_running,
    markdown,
    needs_file_limit,
    parameters_cell,
    write_notebook,
)
from jupyter_client.kernelspec import KernelSpecManager

from ppm.publishing import book, execution, notebooks
from ppm.publishing import run as running
from ppm.publishing.files import one_line
from ppm.publishing.parameters import (
    PARAMETERS,
    ParameterError,
    check_values,
)

PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def contract_problems(path):
    """Sentences on where a notebook departs from what every notebook keeps to."""
    problems = []
    notebook = notebooks.describe(path)
    cells = [cell for cell in notebooks.read_cells(path) if cell["cell_type"] == "code"]
    place = next(n for n, cell in enumerate(cells) if "parameters" in notebooks.cell_tags(cell))
    wanted = parameters_cell(**notebook.parameters)
    if notebooks.cell_source(cells[place]).strip() != wanted:
        problems.append(f"the parameters cell is not what the vocabulary says:\n{wanted}")
    check = checking_cell(notebook.parameters)
    if notebooks.cell_source(cells[place + 1]).strip() != check:
        problems.append(f"the parameters cell is not followed by\n{check}")
    mock = cells[place]["metadata"].get("nbmake", {}).get("mock", {})
    try:
        check_values(mock, notebook.parameters)
    except ParameterError as error:
        problems.append(f"nbmake's small values: {error}")
    if not notebook.objective or notebook.title == notebook.name:
        problems.append("title or objectives are missing")
    if any(cell["outputs"] or cell["execution_count"] for cell in cells):
        problems.append("there are outputs")
    kernel = json.loads(path.read_text("utf-8"))["metadata"]["kernelspec"]["name"]
    if kernel != "python3":
        problems.append(f"the kernel is {kernel}")
    return problems


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_notebook_keeps_the_contract(path):
    assert contract_problems(path) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("data sets drawn", "sets drawn", "not what the vocabulary says"),
        ("replicates=replicates", "replicates=2", "not followed by"),
        ('"replicates": 3', '"replicates": 1', "nbmake's small values"),
        ('"outputs": []', '"outputs": [1]', "there are outputs"),
        ('"name": "python3"', '"name": "ir"', "the kernel is ir"),
        ("# Counts", "Counts", "title"),
    ],
)
def test_a_breach_of_the_contract_is_seen(tmp_path, old, new, told):
    cells = chapter("Counts", replicates=400, seed=1)
    cells[2]["metadata"]["nbmake"] = {"mock": {"replicates": 3}}
    path = write_notebook(tmp_path / "counts.ipynb", cells)
    assert contract_problems(path) == []
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    assert told in "\n".join(contract_problems(path))


def test_nbmake_collects_every_notebook_of_the_book(request):
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "notebooks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    collected = re.findall(r"^notebooks/(\w+)\.ipynb::", finished.stdout, re.MULTILINE)
    in_toc = re.findall(r"notebooks/(\w+)", (ROOT / "_toc.yml").read_text("utf-8"))
    assert len(collected) == len(in_toc) > 3
    assert sorted(collected) == sorted(in_toc) == [path.stem for path in PATHS]
    # ... and so does the present run, when it is of everything
    if not request.config.invocation_params.args:
        items = {item.path for item in request.session.items}
        assert items >= set(PATHS)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("replicates = 400", "expected name: type = value"),
        ("replicates: float = 400.0", "has type int, not float"),
        ("replicate: int = 400", "did you mean replicates"),
        ("replicates: int = 4 * 100", "needs a literal value"),
        ("replicates: int = 1", "replicates = 1 is not accepted"),
        ("replicates: int =", "invalid syntax"),
    ],
)
def test_an_unusable_parameters_cell_is_named_with_its_line(tmp_path, line, told):
    cells = [markdown("# T"), code(f"seed: int = 1\n{line}", tags=["parameters"])]
    path = write_notebook(tmp_path / "odd.ipynb", cells)
    with pytest.raises(notebooks.NotebookError, match=r"odd\.ipynb, parameters cell, line 2") as e:
        notebooks.describe(path)
    assert told in str(e.value)


@pytest.mark.parametrize("count", [0, 2])
def test_a_notebook_has_one_parameters_cell(tmp_path, count):
    cells = [markdown("# T"), *[code("seed: int = 1", tags=["parameters"])] * count]
    path = write_notebook(tmp_path / "odd.ipynb", cells)
    with pytest.raises(notebooks.NotebookError, match="exactly one"):
        notebooks.describe(path)


def test_a_file_that_is_no_notebook_is_named(tmp_path):
    path = tmp_path / "text.ipynb"
    path.write_text("no JSON")
    with pytest.raises(notebooks.NotebookError, match=r"text\.ipynb is not a notebook"):
        notebooks.describe(path)


def test_notebooks_come_in_the_order_of_the_book(tiny_book):
    assert list(notebooks.find_notebooks(tiny_book)) == ["counts", "prose"]
    toc = tiny_book / "_toc.yml"
    toc.write_text(toc.read_text().replace("counts", "x").replace("prose", "counts"))
    toc.write_text(toc.read_text().replace("notebooks/x", "notebooks/prose"))
    assert list(notebooks.find_notebooks(tiny_book)) == ["prose", "counts"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("count: {}", "unknown notebook 'count'"),
        ("counts:\n  replicate: 3", "unknown parameter 'replicate'"),
        ("counts:\n  replicates: 1", "replicates = 1 is not accepted"),
        ("counts: [", "cannot be read"),
    ],
)
def test_a_profile_that_does_not_fit_is_named(tiny_book, text, told):
    (tiny_book / "notebooks" / "profiles" / "odd.yml").write_text(text)
    described = notebooks.find_notebooks(tiny_book)
    with pytest.raises(notebooks.NotebookError, match=r"profiles/odd\.yml: |odd\.yml cannot") as e:
        notebooks.load_profile(tiny_book, "odd", described)
    assert told in str(e.value)


@pytest.mark.parametrize("profile", ["paper", "quick"])
def test_the_profiles_fit_the_notebooks(profile):
    described = notebooks.find_notebooks(ROOT)
    settings = notebooks.load_profile(ROOT, profile, described)
    assert settings.keys() == described.keys()
    # the default profile is what the notebooks say themselves
    if profile == notebooks.DEFAULT_PROFILE:
        assert not any(settings.values())


def test_the_kernel_is_this_interpreter_whatever_the_user_has(tmp_path, monkeypatch):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text('{"argv": ["/no/such/python"], "display_name": "x", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    # without our environment the user's kernel would be taken
    assert KernelSpecManager().get_kernel_spec("python3").argv[0] == "/no/such/python"
    with execution.kernel_environment():
        spec = KernelSpecManager().get_kernel_spec("python3")
        assert spec.argv[0] == sys.executable
        # nobody asked for tables or fits to be kept
        assert spec.env["PPM_RESULTS"] == spec.env["PPM_FITS"] == ""
        # nor for studies to run elsewhere, whatever the surroundings say
        assert spec.env["PPM_WORKERS"] == spec.env["PPM_SCHEDULER"] == ""
    assert KernelSpecManager().get_kernel_spec("python3").argv[0] == "/no/such/python"


def test_what_the_user_gives_goes_before_the_profile_and_what_differs_is_named(
    tiny_book, tmp_path, monkeypatch
):
    given = []
    monkeypatch.setattr(running, "execute", lambda *args, **options: given.append(args[2]))
    monkeypatch.setattr("ppm.publishing.run.render_page", lambda *args, **more: None)
    (tiny_book / "notebooks" / "profiles" / "quick.yml").write_text(
        "counts: {replicates: 2, truncate_at: 5.0}\n"
    )
    # as in the notebook: replicates=400, sizes=[100, 400], truncate_at=3.5, seed=1
    own = {"replicates": 7, "seed": 1}
    running.run(tiny_book, "counts", own, profile="quick", output=tmp_path / "run")
    assert given == [{"replicates": 7, "truncate_at": 5.0, "seed": 1}]
    record = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert sorted(record["changed"]) == ["replicates", "truncate_at"]
    assert record["parameters"] == {
        "replicates": 7, "sizes": [100, 400], "truncate_at": 5.0, "seed": 1
    }
    assert record["profile"] == "quick"


def test_where_the_studies_run_reaches_the_kernel_and_is_recorded(
    tiny_book, tmp_path, monkeypatch
):
    seen = []

    def execute(*arguments, engine, **options):
        with execution.kernel_environment(engine=engine):
            seen.append(KernelSpecManager().get_kernel_spec("python3").env)

    monkeypatch.setattr(running, "execute", execute)
    monkeypatch.setattr("ppm.publishing.run.render_page", lambda *args, **more: None)
    records = []
    for name, where in (("a", {"workers": 3}), ("b", {})):
        running.run(tiny_book, "counts", {}, output=tmp_path / name, **where)
        records.append(json.loads((tmp_path / name / "run.json").read_text("utf-8")))
    assert [env["PPM_WORKERS"] for env in seen] == ["3", ""]
    assert records[0]["engine"] == {"workers": 3} and "engine" not in records[1]
    # it is no parameter: both are the same run
    for key in ("parameters", "changed", "profile"):
        assert records[0][key] == records[1][key]


def test_a_folder_is_known_by_the_names_and_the_contents_of_its_files(tmp_path):
    def hashed(**files):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in files.items():
            path = folder / f"{name.replace('__', '/')}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return notebooks.content_hash(folder)

    one = hashed(quarter1="1,2", inner__quarter2="3")
    assert one == hashed(inner__quarter2="3", quarter1="1,2")
    others = [
        hashed(quarter1="1,3", inner__quarter2="3"), hashed(quarter1="1,2", inner__quarter2="4"),
        hashed(quarter1="1,2", quarter2="3"), hashed(quarter1="3", inner__quarter2="1,2"),
        hashed(quarter1="1,2"),
    ]
    assert len({one, *others}) == 6


TABLE = code(
    "import pandas as pd\n"
    "ppm.publishing.save(pd.DataFrame({'seed': [seed]}), 'seeds')\n"
    "from pathlib import Path\n"
    "print('it holds', Path(ce_data).read_text())\n"
    "print('fits lie in', Path(ppm.publishing.fits_folder()).parent.name)",
)


def test_a_run_leaves_everything_about_it(tiny_book, tmp_path, monkeypatch):
    write_notebook(
        tiny_book / "notebooks" / "prose.ipynb",
        chapter("Prose", [TABLE, markdown("$\\epsilon = 2\\Delta$")], ce_data="", seed=2),
    )
    somewhere = tmp_path / "elsewhere {0}"
    somewhere.mkdir()
    (somewhere / "data.zip").write_bytes(b"abc")
    monkeypatch.chdir(somewhere)
    folder = running.run(tiny_book, "prose", {"seed": 5, "ce_data": "data.zip"})
    assert folder.parent == Path("runs")
    assert (folder / "seeds.csv").read_text() == ",seed\n0,5\n"
    executed = (folder / "prose.ipynb").read_text("utf-8")
    # the kernel works elsewhere and found the file all the same
    assert "it holds abc" in executed
    assert "fits lie in _build" in executed

    text = (folder / "run.json").read_text("utf-8")
    assert str(tmp_path) not in text
    record = json.loads(text)
    assert record["status"] == "complete"
    assert record["parameters"] == {"ce_data": "data.zip", "seed": 5}
    assert record["ce_data_sha256"] == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of abc, FIPS 180-2
    )
    assert record["versions"].keys() >= {"ppm", "numpy", "papermill"}
    assert {path.name for path in Path().iterdir()} == {"data.zip", "runs"}

    page = (folder / "prose.html").read_text("utf-8")
    assert "How this chapter was made" in page
    for file in re.findall(r'(?:src|href)="([^"#?]+)', page):
        assert not file.startswith(("http", "//")) or "sphinx" in file or "jupyterbook" in file
        if file.startswith("prose_files"):
            assert (folder / file).is_file()
    assert "prose_files/_static/mathjax/tex-chtml.js" in page


LOOK = code("from pathlib import Path\nprint(Path(ce_data).read_bytes(), Path(ce_data).name)")


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("fails", [True, False], ids=["failed", "complete"])
def test_a_run_does_not_keep_where_the_data_lie(tiny_book, tmp_path, monkeypatch, links, fails):
    cells = [LOOK, code("raise ValueError(ce_data)")] if fails else [LOOK]
    write_notebook(
        tiny_book / "notebooks" / "prose.ipynb", chapter("Prose", cells, ce_data="", seed=2)
    )
    secret = tmp_path / "secret place"
    secret.mkdir()
    (secret / "data.zip").write_bytes(b"abc")
    if not links:

        def refuse(*arguments):
            raise OSError

        monkeypatch.setattr(Path, "symlink_to", refuse)
    expected = pytest.raises(notebooks.NotebookFailed) if fails else contextlib.nullcontext()
    with expected:
        running.run(
            tiny_book, "prose", {"ce_data": str(secret / "data.zip")}, output=tmp_path / "out"
        )
    executed = json.loads((tmp_path / "out" / "prose.ipynb").read_text("utf-8"))
    assert executed["metadata"]["papermill"]["parameters"]["ce_data"] == "data.zip"
    sources = ["".join(cell["source"]) for cell in executed["cells"]]
    assert any(re.search(r"^ce_data = .data\.zip.$", source, re.M) for source in sources)
    assert "b'abc' data.zip" in json.dumps(executed)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    for file in files:
        # without links a message may name the path
        assert b"secret place" not in file.read_bytes() or (
            fails and not links and file.name == "run.json"
        )
    assert len(files) >= 3


def modes(folder):
    """Permissions of what lies in a folder, but for what every page has."""
    return {
        path.relative_to(folder).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in folder.rglob("*")
        if "_static" not in path.parts
    }


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
@pytest.mark.parametrize("made_before", [False, True])
def test_a_run_can_be_read_by_its_owner_only(tiny_book, tmp_path, made_before):
    write_notebook(
        tiny_book / "notebooks" / "prose.ipynb",
        chapter("Prose", [TABLE, FIGURE], ce_data="", seed=2),
    )
    data, out = tmp_path / "data.zip", tmp_path / "out"
    data.write_bytes(b"abc")
    before = os.umask(0o022)
    try:
        if made_before:
            out.mkdir()
        running.run(tiny_book, "prose", {"ce_data": str(data)}, output=out)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    found = modes(out)
    assert found.keys() > {"seeds.csv", "prose.ipynb", "prose.html", "run.json", "prose_files"}
    assert any(name.startswith("prose_files/_images/") for name in found)
    for name, mode in found.items():
        assert mode == (0o700 if (out / name).is_dir() else 0o600), name
    # a folder that somebody made is as that somebody made it
    assert stat.S_IMODE(out.stat().st_mode) == (0o755 if made_before else 0o700)
    note = (out / "CONFIDENTIAL.txt").read_text("utf-8")
    assert "computed from records: data.zip" in note and "only their owner" in note


def test_only_a_run_on_a_data_file_is_called_confidential(tiny_book, tmp_path):
    running.run(tiny_book, "prose", {}, output=tmp_path / "out")
    assert not (tmp_path / "out" / "CONFIDENTIAL.txt").exists()


def test_a_failed_run_keeps_the_notebook_and_says_which_cell(tiny_book, tmp_path):
    cells = [code("print('before')"), code("seed / 0"), code("print('after')")]
    write_notebook(tiny_book / "notebooks" / "prose.ipynb", chapter("Prose", cells))
    out = tmp_path / "out"
    with pytest.raises(notebooks.NotebookFailed) as caught:
        running.run(tiny_book, "prose", {}, output=out)
    assert str(caught.value) == (
        "prose, cell [5] (seed / 0): ZeroDivisionError: division by zero"
    )
    executed = (out / "prose.ipynb").read_text("utf-8")
    assert '"before\\n"' in executed
    assert '"after\\n"' not in executed
    assert json.loads((out / "run.json").read_text())["status"].startswith("failed: prose, cell")
    assert not (out / "prose.html").exists()


def test_a_warning_in_a_notebook_is_an_error(tiny_book, tmp_path):
    cells = [code("import warnings\nwarnings.warn('odd result')")]
    path = write_notebook(tiny_book / "notebooks" / "prose.ipynb", chapter("Prose", cells))
    with pytest.raises(notebooks.NotebookFailed, match="UserWarning: odd result"):
        execution.execute(notebooks.describe(path), tmp_path / "out.ipynb", {})


@pytest.mark.parametrize("value", [1, "many"], ids=["range", "type"])
def test_plain_papermill_refuses_from_inside_the_notebook(tiny_book, tmp_path, value):
    import papermill

    with pytest.raises(papermill.PapermillExecutionError) as caught:
        papermill.execute_notebook(
            tiny_book / "notebooks" / "counts.ipynb",
            tmp_path / "out.ipynb",
            parameters={"replicates": value},
            progress_bar=False,
        )
    assert caught.value.ename == "ParameterError"
    # word for word what the command line says before any kernel starts
    with pytest.raises(ParameterError) as refused:
        PARAMETERS["replicates"].check(value)
    assert caught.value.evalue == str(refused.value)


LARGE = {
    "table": "import pandas as pd\n"
    "ppm.publishing.save(pd.DataFrame({'number': range(60_000)}), 'large')",
    "notebook": "print('x' * 300_000)",
}


@needs_file_limit
@pytest.mark.parametrize("what", LARGE)
def test_on_a_full_disk_nothing_is_half_written(tiny_book, tmp_path, file_limit, what):
    write_notebook(
        tiny_book / "notebooks" / "prose.ipynb", chapter("Prose", [code(LARGE[what])])
    )
    out = tmp_path / "out"
    with file_limit(200_000), pytest.raises((OSError, notebooks.NotebookFailed)) as caught:
        running.run(tiny_book, "prose", {}, output=out, progress=False)
    told = one_line(caught.value)
    assert "File too large" in told
    record = json.loads((out / "run.json").read_text())
    assert record["status"].startswith("failed: ") and "File too large" in record["status"]
    # of the notebook there is what could be written
    left = {"run.json", "prose.ipynb"} if what == "table" else {"run.json"}
    assert {file.name for file in out.iterdir()} == left


@pytest.fixture
def no_work(monkeypatch):
    """Stand-ins for what executes a notebook and makes its page."""

    def execute(notebook, output, values, **options):
        Path(output).write_text("executed")

    def render_page(root, executed, record, **more):
        executed.with_suffix(".html").write_text("page")

    monkeypatch.setattr(running, "execute", execute)
    monkeypatch.setattr(running, "render_page", render_page)


FULL = OSError(28, "No space left on device", "/somewhere/x")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (book.BookError("no page could be made: x"), "failed: no page could be made: x"),
        (FULL, "failed: No space left on device"),
    ],
    ids=["interrupt", "page", "disk"],
)
def test_a_run_without_its_page_is_not_complete(
    tiny_book, tmp_path, no_work, monkeypatch, error, status
):
    def fail(*arguments, **more):
        # what would be there if it were killed here
        assert status_of(tmp_path / "out") == "unfinished"
        raise error

    monkeypatch.setattr(running, "render_page", fail)
    with pytest.raises(type(error)):
        running.run(tiny_book, "prose", {}, output=tmp_path / "out")
    assert status_of(tmp_path / "out") == status


def status_of(folder):
    return json.loads((folder / "run.json").read_text())["status"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), FULL], ids=["interrupt", "disk"])
def test_a_run_whose_last_word_cannot_be_written_is_not_complete(
    tiny_book, tmp_path, no_work, monkeypatch, error
):
    original = notebooks.write_json

    def write_json(path, content):
        if content["status"] != "unfinished":
            raise error
        original(path, content)

    monkeypatch.setattr(running, "write_json", write_json)
    with pytest.raises(type(error)):
        running.run(tiny_book, "prose", {}, output=tmp_path / "out")
    assert status_of(tmp_path / "out") == "unfinished"


def test_a_folder_in_which_nothing_can_be_written_stays_empty(
    tiny_book, tmp_path, no_work, monkeypatch
):
    def full(*arguments):
        raise FULL

    monkeypatch.setattr(running, "write_json", full)
    with pytest.raises(OSError, match="No space left"):
        running.run(tiny_book, "prose", {}, output=tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("named", [True, False], ids=["one folder", "folders by the time"])
def test_of_two_runs_at_once_each_has_its_own_folder(
    tiny_book, tmp_path, no_work, monkeypatch, named
):
    monkeypatch.chdir(tmp_path)
    both = threading.Barrier(2)
    make = running._made

    def together(path):
        # both have seen that there is nothing in it
        if not own.done:
            own.done = True
            both.wait(10)
        return make(path)

    own = threading.local()
    monkeypatch.setattr(running, "_made", together)

    def run(number):
        own.done = False
        try:
            return running.run(
                tiny_book, "prose", {"seed": number}, output="out" if named else None
            )
        except notebooks.NotebookError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, [1, 2]))
    refused = "the output folder out exists and is not empty"
    assert len(set(found)) == 2 and (refused in found) == named
    for number, folder in enumerate(found, start=1):
        if folder != refused:
            record = json.loads((folder / "run.json").read_text())
            assert record["status"] == "complete" and record["parameters"]["seed"] == number


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
@pytest.mark.parametrize(
    ("number", "status", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_a_signal_ends_the_run_and_its_kernel(tiny_book, tmp_path, number, status, word):
    mark = tmp_path / "kernel started"
    cells = [
        code(f"import os, pathlib\npathlib.Path({str(mark)!r}).write_text(str(os.getpid()))"),
        code("import time\ntime.sleep(600)"),
    ]
    write_notebook(tiny_book / "notebooks" / "prose.ipynb", chapter("Prose", cells))
    command = [sys.executable, "-m", "ppm", "--root", tiny_book, "run", "prose"]
    process = subprocess.Popen(
        [*command, "--output", tmp_path / "out"], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        while not (mark.is_file() and mark.read_text()):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
        process.send_signal(number)
        _, told = process.communicate()
    finally:
        process.kill()
    assert process.returncode == status
    assert told == f"ppm: {word}; what was done so far is kept\n"
    assert status_of(tmp_path / "out") == "interrupted"
    assert (tmp_path / "out" / "prose.ipynb").is_file()
    assert not is_running(int(mark.read_text()))
