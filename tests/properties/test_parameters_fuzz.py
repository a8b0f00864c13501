"""Any parameter, however it is given, is taken in its own type or refused in one line."""

import json
import math

import pytest
import yaml
from conftest import ROOT, chapter, examples, write_notebook
from hypothesis import given
from hypothesis import strategies as st

from ppm.publishing import command_line, notebooks, parameters
from ppm.publishing.notebooks import NotebookError
from ppm.publishing.parameters import PARAMETERS, ParameterError, check, parse_value

NAMES = sorted(PARAMETERS)
names = st.one_of(st.sampled_from(NAMES), st.text(max_size=12))
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**30),
    st.floats(),
    st.text(max_size=10),
    st.binary(max_size=4),
    st.builds(pow, st.just(16), st.just(5000)),
    st.just(1e308),
    st.complex_numbers(),
    st.dates(),
    st.sampled_from(["", "\0", "a\nb", "'", "\ud800"]),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner, inner), st.dictionaries(st.text(), inner)
    ),
    max_leaves=6,
)
literals = st.one_of(
    st.text(max_size=20),
    st.from_regex(r"[-+0-9.e_jxo()\[\]{}, '\"#\\n]{0,15}", fullmatch=True),
    values.map(lambda value: "" if value == 16**5000 else _written(value)),
    st.sampled_from([
        "0x" + "f" * 5000, "1" * 5000, "[" * 500 + "]" * 500, "-" * 3000 + "1", "1e999", "nan",
        "inf", "True", "true", " 5 ", "[1,", "(1, 2)", "[[0.7, 0.0]]", "1_000", "０", "\x00", "1j",
    ]),
)


def _written(value):
    try:
        return repr(value)
    except ValueError:
        return ""


def in_one_line(error):
    told = str(error)
    return "\n" not in told and 0 < len(told) < 2000 and told.isprintable()


def right_type(value, kind):
    """Whether a value has just the type of a parameter, and every number is finite."""
    if kind.startswith("list["):
        return type(value) is list and all(right_type(entry, kind[5:-1]) for entry in value)
    if kind == "float":
        return type(value) is float and math.isfinite(value)
    return type(value).__name__ == kind


def taken_or_refused(name, value, refusals=ParameterError):
    """Check one value; True if it is taken, and then it is in its own type and taken again."""
    try:
        found = parameters.check_values({name: value}, PARAMETERS)[name]
    except refusals as error:
        assert in_one_line(error), repr(str(error))
        return False
    assert right_type(found, PARAMETERS[name].type)
    assert parameters.check_values({name: found}, PARAMETERS) == {name: found}
    return True


@given(names, values)
def test_any_value_is_taken_in_its_own_type_or_refused_in_one_line(name, value):
    taken_or_refused(name, value)


@given(names, literals)
def test_any_text_behind_p_is_read_or_refused_in_one_line(name, text):
    if name in PARAMETERS:
        taken_or_refused(name, parse_value(name, text))


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
def test_what_a_parameter_takes_it_takes_as_text_too(name, data):
    numbers = st.one_of(st.integers(0, 300), st.floats(0.0, 2.0))
    value = data.draw(
        st.one_of(numbers, st.booleans(), st.lists(numbers, max_size=3).map(sorted),
                  st.lists(st.tuples(numbers, numbers).map(list), max_size=2))
    )
    text = repr(value)
    if PARAMETERS[name].type != "str" and taken_or_refused(name, value):
        check(**{name: parse_value(name, text)})
        assert PARAMETERS[name].check(parse_value(name, text)) == PARAMETERS[name].check(value)


@pytest.mark.parametrize(
    "text",
    [
        "0x" + "f" * 5000,
        "1" * 5000,
        "[" * 500 + "]" * 500,
        "-" * 3000 + "1",
        "[0x" + "f" * 5000 + "]",
    ],
    ids=["hexadecimal", "digits", "brackets", "signs", "in a list"],
)
@pytest.mark.parametrize("name", ["seed", "sizes", "mean", "configurations"])
def test_a_value_of_thousands_of_signs_is_refused_in_one_line(name, text):
    assert not taken_or_refused(name, parse_value(name, text))


# ---- words of the command line -------------------------------------------------------------------


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    (folder / "_config.yml").write_text("title: t\n")
    write_notebook(
        folder / "notebooks" / "one.ipynb",
        chapter("One", seed=1, sizes=[2, 3], mean=2.0, configurations=[[0.5, 0.0]], ce_data=""),
    )
    (folder / "notebooks" / "profiles").mkdir()
    (folder / "notebooks" / "profiles" / "paper.yml").write_text("{}\n")
    return folder


@examples(40)
@given(data=st.data())
def test_any_setting_on_the_command_line_ends_in_one_line(root, data):
    settings = data.draw(
        st.lists(
            st.one_of(st.tuples(names, literals).map("=".join), literals), min_size=1, max_size=3
        )
    )
    # the last is always wrong, so that no notebook is ever run
    words = [word for setting in settings for word in ("-p", setting)] + ["-p", "seed=-1"]
    told = []

    class Out:
        def write(self, text):
            told.append(text)

        def flush(self):
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", Out())
        try:
            status = command_line.main(["--root", str(root), "run", "one", *words])
        except SystemExit as stop:
            status = stop.code
    text = "".join(told)
    assert status == 2 and text.endswith("\n") and text.count("\n") == 1, text
    assert "Traceback" not in text


# ---- profiles ------------------------------------------------------------------------------------

keys = st.one_of(st.sampled_from(["one", "ledger", "seed", "sizes", "mean"]), leaves)
contents = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(keys.filter(lambda key: not isinstance(key, (list, dict))), inner),
        ),
        max_leaves=6,
    ).map(lambda content: _yaml(content)),
    st.sampled_from(
        [
            b"one:\n  seed: 1\n  seed: 2\n",
            b"one: [seed, 1]\n",
            b"one: 3\n",
            b"- one\n",
            b"3\n",
            b"one:\n  1: 2\n",
            b"one:\n  seed: 0x" + b"f" * 5000,
            b"one: {seed: 2017-13-45}\n",
            b"\xff\xfe\x00",
            b"one: !!python/object:os.system {}\n",
            b"a: &a [*a]\n",
            b"? [1]\n: 2\n",
            b"one: &x {seed: *x}\n",
            b"[" * 2000,
            b"one:\n\tseed: 1\n",
            b"one: {seed: 1_0}\n",
            b"one: {? {a: 1} : 2}\n",
            b"one:\n  seed: !!int 'x'\n",
            b"one: {seed: !!float 'x'}\n",
            b"one: {seed: .nan}\n",
            b"one: {sizes: !!set {2, 3}}\n",
            b"one: {<<: 3}\n",
            b"one: {seed: !!timestamp 'x'}\n",
            b"one: {seed: !!binary 'x'}\n",
            b"one: {seed: !!omap 1}\n",
        ]
    ),
)


def _yaml(content):
    try:
        return yaml.dump(content).encode("utf-8", "surrogatepass")
    except (ValueError, yaml.YAMLError):
        return b"{}"


@examples(150)
@given(contents)
def test_any_profile_is_read_into_checked_values_or_refused_in_one_line(root, raw):
    path = root / "notebooks" / "profiles" / "any.yml"
    path.write_bytes(raw)
    known = notebooks.find_notebooks(root)
    for read in (
        lambda: notebooks.load_profile(root, "any", known),
        lambda: notebooks.ledger_settings(root, "any"),
    ):
        try:
            found = read()
        except NotebookError as error:
            assert in_one_line(error), repr(str(error))
            assert "notebooks/profiles/any.yml" in str(error)
            continue
        for name, value in found.get("one", {}).items():
            assert right_type(value, PARAMETERS[name].type)


# ---- notebooks' own parameters -------------------------------------------------------------------

def _json(content):
    try:
        return json.dumps(content, default=str).encode()
    except ValueError:
        return b"{}"


lines = st.one_of(
    st.text(max_size=30),
    st.builds(
        "{}: {} = {}".format, names, st.sampled_from(["int", "float", "str", "list[int]", "x"]),
        literals,
    ),
)


@examples(60)
@given(st.lists(lines, max_size=3))
def test_any_parameters_cell_is_read_or_refused_in_one_line(root, cell):
    path = root / "any.ipynb"
    cells = chapter("Any", seed=1)
    for one in cells:
        if one["metadata"].get("tags") == ["parameters"]:
            one["source"] = "\n".join(cell)
    try:
        write_notebook(path, cells)
    except UnicodeEncodeError:
        return
    try:
        found = notebooks.describe(path).parameters
    except NotebookError as error:
        assert in_one_line(error), repr(str(error))
        return
    for name, value in found.items():
        assert right_type(value, PARAMETERS[name].type)


@examples(60)
@given(
    st.one_of(
        st.binary(max_size=30),
        st.recursive(leaves, lambda inner: st.one_of(
            st.lists(inner, max_size=2),
            st.dictionaries(st.sampled_from(["cells", "cell_type", "metadata", "source"]), inner),
        ), max_leaves=5).map(_json),
        st.just(b"[" * 100_000),
    )
)
def test_any_file_is_no_notebook_in_one_line(root, raw):
    path = root / "any.ipynb"
    path.write_bytes(raw)
    try:
        notebooks.describe(path)
    except NotebookError as error:
        assert in_one_line(error) and "any.ipynb" in str(error), repr(str(error))


def test_the_books_own_profiles_and_notebooks_are_taken():
    known = notebooks.find_notebooks(ROOT)
    for path in sorted((ROOT / "notebooks" / "profiles").glob("*.yml")):
        assert notebooks.load_profile(ROOT, path.stem, known)
