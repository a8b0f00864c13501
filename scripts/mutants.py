"""Change the library one line at a time, and see whether a test fails.

A mutant is the library with one wrong line in it. A mutant that every test accepts stands for a
mistake that a reader would not be spared. Two kinds are tried:

- those of ``tests/mutants.toml``, chosen by hand, each with what a reader would have got wrong;
- ``--number`` more, drawn at random from all lines by ``--seed``.

Work is done on a copy of the repository in a temporary folder, which is removed at the end, also
after Ctrl-C; the repository itself is only read. Nothing is installed and no network is used.

Run it with ``make mutants``, or ``ARGS='--only sweep --number 20 --seed 3'`` for a part. The exit
status is 1 if a mutant of the list lives that is not known to be equivalent. One of those drawn at
random may be equivalent: that is for a person to judge, and to put on the list with a reason.

Two tools that do this were tried. cosmic-ray changes the files where they lie, and leaves the last
change behind when it is stopped. mutmut is fast, but knows neither a list nor a sample, and leaves
out functions with decorators, properties among them.
"""

import argparse
import ast
import contextlib
import functools
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "mutants.toml"
IGNORED = (
    ".git", ".venv", ".stan", "_build", "runs", "build", "dist", "*.egg-info", "__pycache__",
    ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints",
)
# a mutant that never ends is killed after this many times what the tests take without it
PATIENCE, AT_LEAST = 4.0, 60.0

# which tests a module answers to, the fastest first; without an entry, those named after it
TESTS = {
    "__init__": ["test_light_import"],
    "__main__": ["test_command_line"],
    "_random": ["test_random"],
    "_validation": [
        "test_extras",
        "test_weights",
        "test_lipschitz",
        "test_pdp",
        "test_utility",
        "test_mechanism",
        "test_gamma_poisson",
    ],
    "audits/__init__": ["test_light_import"],
    "audits/audit_study": ["test_closed_form", "test_plots"],
    "audits/closed_form": ["test_closed_form", "test_plots"],
    "audits/censored_counts": ["test_censored_counts"],
    "audits/units": ["test_closed_form"],
    "classroom/__init__": ["test_light_import"],
    "publishing/__init__": ["test_light_import"],
    "publishing/book": ["test_book"],
    "publishing/claims": ["test_ledger", "test_pages"],
    "publishing/editions": ["test_editions"],
    "publishing/exercises": ["test_editions", "test_classroom"],
    "publishing/execution": ["test_notebooks", "test_command_line", "test_kernels"],
    "publishing/fingerprints": ["test_book"],
    "publishing/rules": ["test_ledger", "test_pages"],
    "publishing/run": ["test_notebooks", "test_command_line"],
    "publishing/schema": ["test_checks", "test_ledger"],
    "publishing/staging": ["test_book", "test_checks"],
    "survey/design": ["test_expenditure"],
    "survey/downloading": ["test_expenditure"],
    "survey/stand_in": ["test_expenditure"],
    "synthesizers/accepted": ["test_mechanism", "test_pymc_any_model"],
    "publishing/checks": ["test_checks", "test_statements"],
    "studies/contraction_study": ["test_contraction_study", "test_plots", "test_ledger_values"],
    "diagnostics": ["test_diagnostics", "test_mechanism", "test_starting_points"],
    "studies/kept_fits": ["test_kept_fits", "test_risk_utility", "test_starting_points"],
    "studies/kept_folder": ["test_kept_fits"],
    "studies/engine": ["test_tasks"],
    "studies/origins": ["test_kept_fits", "test_tasks"],
    "publishing/ledger": ["test_ledger", "test_pages", "test_book"],
    "publishing/ledger_values": ["test_ledger_values", "test_ledger"],
    "lipschitz": ["test_lipschitz", "test_mechanism", "test_weights"],
    "mechanism": ["test_mechanism", "test_strict", "test_sweep_any_model"],
    "publishing/notebooks": ["test_notebooks", "test_command_line", "test_book"],
    "publishing/pages": ["test_pages", "test_book"],
    "publishing/parameters": ["test_parameters", "test_notebooks", "test_command_line"],
    "pdp": ["test_pdp", "test_mechanism", "test_contraction_study"],
    "publishing/results": ["test_results", "test_risk_utility", "test_notebooks"],
    "risk": ["test_risk", "test_weights"],
    "studies/scalar_search": ["test_scalar_search", "test_mechanism", "test_risk_utility"],
    "studies/risk_utility": [
        "test_risk_utility",
        "test_kept_fits",
        "test_starting_points",
        "test_sweep_any_model",
    ],
    "studies/__init__": ["test_light_import"],
    "studies/sweep_results": ["test_risk_utility", "test_starting_points", "test_plots"],
    "survey/__init__": ["test_light_import"],
    "utility": ["test_utility", "test_risk_utility"],
    "weights": ["test_weights", "test_fixed_weights", "test_mechanism"],
    "synthesizers/__init__": ["test_light_import"],
    "synthesizers/base": ["test_base"],
    "synthesizers/chains": ["test_chains", "test_mixture"],
    "synthesizers/mixture/__init__": ["test_light_import"],
    "synthesizers/mixture/censored_sampler": ["test_mixture_censored"],
    "synthesizers/mixture/compiled_terms": ["test_mixture_censored"],
    "synthesizers/mixture/compiled_passes": ["test_passes", "test_mixture"],
    "synthesizers/mixture/fits": ["test_mixture", "test_floor", "test_evaluated"],
    "synthesizers/mixture/model": [
        "test_base",
        "test_mixture_labels",
        "test_mixture_calibration",
        "test_mixture_moves",
        "test_mixture",
        "test_pymc_models",
    ],
    "synthesizers/censored_gamma": ["test_censored_gamma", "test_censored_counts"],
    "synthesizers/gamma_poisson": ["test_base", "test_gamma_poisson", "test_mechanism"],
    "synthesizers/mixture/predictive": ["test_mixture_labels", "test_mixture", "test_passes"],
    "synthesizers/mixture/sampler": [
        "test_mixture_calibration",
        "test_mixture_moves",
        "test_passes",
        "test_mixture",
        "test_pymc_models",
    ],
    "synthesizers/mixture/numerics": [
        "test_mixture_calibration",
        "test_mixture_moves",
        "test_mixture",
        "test_passes",
        "test_pymc_models",
    ],
    "synthesizers/pymc_model": [
        "test_pymc_any_model",
        "test_sweep_any_model",
        "test_pymc_models",
    ],
    "synthesizers/pymc_rewriting": [
        "test_pymc_any_model",
        "test_pymc_censored",
        "test_confidential_bytes",
        "test_pymc_models",
    ],
    "synthesizers/mixture/record_passes": ["test_passes", "test_mixture"],
    **{
        f"classroom/{path.stem}": ["test_classroom"]
        for path in (ROOT / "ppm" / "classroom").glob("*.py")
        if path.stem != "__init__"
    },
}


@dataclass(frozen=True)
class Mutant:
    """One wrong line: where it is, the text of the whole file with it, and what it does."""

    name: str
    file: str
    line: int
    before: str
    after: str
    text: str
    wrong: str = ""
    tests: tuple = ()

    def __str__(self):
        told = f"{self.file}:{self.line}  {self.name}"
        for sign, part in (("-", self.before), ("+", self.after)):
            told += "".join(f"\n    {sign} {line.strip()}" for line in part.splitlines())
        return told + (f"\n      {self.wrong}" if self.wrong else "")


# ---- the list -----------------------------------------------------------------------------------


def listed(root=ROOT, path=LIST):
    """Mutants of the list, those known to be equivalent, and those whose line has changed."""
    entries = tomllib.loads(path.read_text("utf-8"))["mutant"]
    names = [entry["name"] for entry in entries]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SystemExit(f"{path.name} has two mutants called {', '.join(sorted(twice))}")
    found, equivalent, gone = [], [], []
    for entry in entries:
        text = (root / entry["file"]).read_text("utf-8")
        before, after = entry["before"].strip("\n"), entry["after"].strip("\n")
        places = text.count(before)
        if places != 1:
            gone.append((entry["name"], f"{entry['file']} has its lines {places} times"))
            continue
        start = text.index(before)
        mutant = Mutant(
            entry["name"], entry["file"], text.count("\n", 0, start) + 1, before, after,
            text.replace(before, after), entry["wrong"], tuple(entry.get("tests", ())),
        )
        (equivalent if "equivalent" in entry else found).append(mutant)
    return found, equivalent, gone


# ---- mutants at random --------------------------------------------------------------------------

COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}
ARITHMETIC = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*", ast.FloorDiv: "/",
    ast.Mod: "*",
}
FUNCTIONS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax",
    "argmax": "argmin", "mean": "median", "median": "mean", "sum": "mean", "minimum": "maximum",
    "maximum": "minimum", "floor": "ceil", "ceil": "floor", "expm1": "exp", "log1p": "log",
    "isfinite": "isnan", "spawn": "spawn", "var": "std", "std": "var", "zeros": "ones",
    "ones": "zeros", "ppf": "cdf", "cdf": "sf", "sorted": "list", "cumsum": "array",
}
# what only the eye can judge
LOOKS = {
    "alpha", "bbox", "bbox_to_anchor", "color", "dpi", "edgecolor", "facecolor", "figsize",
    "fontsize", "fontweight", "frameon", "ha", "handlelength", "hatch", "linestyle", "linewidth",
    "loc", "lw", "markersize", "mininterval", "ncols", "padding", "rotation", "smoothing", "va",
    "zorder",
}


class _Changes(ast.NodeVisitor):
    """Every change that the operators below make to one file: (node, new text, name)."""

    def __init__(self, source):
        self.source, self.found, self.names = source, [], []

    def text(self, node):
        return ast.get_source_segment(self.source, node)

    def add(self, node, text, name):
        self.found.append((node, text, name))

    # messages, types and imports are not what is tried here
    def visit_Raise(self, node): ...
    def visit_Import(self, node): ...
    def visit_ImportFrom(self, node): ...
    def visit_Assert(self, node): ...
    def visit_JoinedStr(self, node): ...
    def visit_AnnAssign(self, node): ...

    def visit_FunctionDef(self, node):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        loaded = [
            part.id for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        ]
        self.names.append(sorted({argument.arg for argument in arguments} | set(loaded)))
        for part in (*node.args.defaults, *node.args.kw_defaults, *node.body):
            if part is not None:
                self.visit(part)
        self.names.pop()

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call):
            self.add(node, "pass", "call dropped")
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self.add(node, "pass", "step dropped")
        kind = ARITHMETIC.get(type(node.op))
        if kind:
            target, value = self.text(node.target), self.text(node.value)
            self.add(node, f"{target} {kind}= {value}", "arithmetic")
        self.generic_visit(node)

    def visit_Compare(self, node):
        if len(node.ops) == 1:
            left, right = self.text(node.left), self.text(node.comparators[0])
            self.add(node, f"{left} {COMPARISONS[type(node.ops[0])]} {right}", "comparison")
        self.generic_visit(node)

    def visit_BinOp(self, node):
        kind = ARITHMETIC.get(type(node.op))
        if kind and not isinstance(node.left, (ast.Constant, ast.JoinedStr)) or (
            kind and isinstance(getattr(node.left, "value", None), (int, float))
        ):
            left, right = self.text(node.left), self.text(node.right)
            self.add(node, f"{left} {kind} {right}", "arithmetic")
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        kind = " or " if isinstance(node.op, ast.And) else " and "
        self.add(node, kind.join(f"({self.text(v)})" for v in node.values), "and for or")
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, (ast.Not, ast.USub)):
            self.add(node, f"({self.text(node.operand)})", "sign or not dropped")
        self.generic_visit(node)

    def visit_If(self, node):
        self.add(node.test, f"not ({self.text(node.test)})", "condition turned round")
        self.generic_visit(node)

    def visit_IfExp(self, node):
        self.add(node.test, f"not ({self.text(node.test)})", "condition turned round")
        self.generic_visit(node)

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, bool):
            self.add(node, str(not value), "constant")
        elif isinstance(value, int):
            self.add(node, str(value + 1), "off by one")
        elif isinstance(value, float):
            self.add(node, repr(value * 1.5 if value else 1.0), "constant")

    def visit_Dict(self, node):
        if None not in node.keys:
            for one, other in zip(node.values, node.values[1:], strict=False):
                if ast.dump(one) != ast.dump(other):
                    self.add(one, self.text(other), "the next entry's value")
        self.generic_visit(node)

    def visit_Call(self, node):
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in LOOKS:
                self.add(keyword, "**{}", "argument dropped")
        for one, other in zip(node.args, node.args[1:], strict=False):
            if not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred):
                texts = self.text(one), self.text(other)
                if texts[0] != texts[1] and one.end_lineno == other.lineno:
                    self.add((one, other), f"{texts[1]}, {texts[0]}", "arguments exchanged")
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", None))
        if name in FUNCTIONS and FUNCTIONS[name] != name:
            whole = self.text(function)
            self.add(function, whole[: -len(name)] + FUNCTIONS[name], "another function")
        self.generic_visit(node)

    def visit_keyword(self, node):
        if node.arg not in LOOKS:
            self.generic_visit(node)

    def visit_Slice(self, node):
        for part in (node.lower, node.upper):
            if part is not None and not isinstance(part, (ast.Constant, ast.UnaryOp)):
                self.add(part, f"{self.text(part)} + 1", "off by one")
        self.generic_visit(node)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and self.names and node.id in self.names[-1]:
            for other in self.names[-1]:
                if other not in (node.id, "self"):
                    self.add(node, other, "another name")


def changes(root, file):
    """Every change to one file by line: a list of (kind, function that makes the mutant)."""
    source = (root / file).read_text("utf-8")
    visitor = _Changes(source)
    visitor.visit(ast.parse(source))
    # columns count bytes
    raw = source.encode("utf-8").splitlines(keepends=True)
    starts = list(itertools.accumulate(map(len, raw), initial=0))
    by_line = {}
    for node, text, kind in visitor.found:
        first, last = node if isinstance(node, tuple) else (node, node)
        place = (
            starts[first.lineno - 1] + first.col_offset,
            starts[last.end_lineno - 1] + last.end_col_offset,
        )
        lines = first.lineno, last.end_lineno
        made = functools.partial(_made, file, source, place, lines, text, kind)
        by_line.setdefault(first.lineno, []).append((kind, made))
    return by_line


def _made(file, source, place, lines, text, kind):
    """The mutant, or None if it is no Python or the same code."""
    raw = source.encode("utf-8")
    changed = (raw[: place[0]] + text.encode("utf-8") + raw[place[1] :]).decode("utf-8")
    try:
        if ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    last = lines[1] + changed.count("\n") - source.count("\n")
    before, after = (
        "\n".join(whole.splitlines()[lines[0] - 1 : end])
        for whole, end in ((source, lines[1]), (changed, last))
    )
    return Mutant(kind, file, lines[0], before, after, changed)


def at_random(root, files, number, seed, known=()):
    """Mutants of ``number`` different lines; ``known`` are those that need not be tried again."""
    rng = random.Random(seed)
    known = {mutant.text for mutant in known}
    lines = [line for file in files for line in sorted(changes(root, file).items())]
    rng.shuffle(lines)
    found = []
    for _, choices in lines:
        if len(found) == number:
            break
        kinds = sorted({kind for kind, _ in choices})
        if len(kinds) > 1 and "another name" in kinds:
            # the most frequent by far, and mostly ends in a traceback: too easy
            kinds.remove("another name")
        kind = rng.choice(kinds)
        mutant = rng.choice([made for other, made in choices if other == kind])()
        if mutant is not None and mutant.text not in known:
            found.append(mutant)
    return found


# ---- trying them --------------------------------------------------------------------------------


def tests_of(file, root=ROOT):
    """Test files that a module answers to, relative to the root."""
    module = file.removeprefix("ppm/").removesuffix(".py")
    names = TESTS.get(module, [f"test_{Path(module).name}"])
    places = {path.stem: path for path in (root / "tests").rglob("test_*.py")}
    missing = [name for name in names if name not in places]
    if missing:
        raise SystemExit(f"{file}: there are no tests {', '.join(missing)}; see TESTS")
    return tuple(str(places[name].relative_to(root)) for name in names)


class Bench:
    """Copies of the repository to break, and the tests that run in them."""

    def __init__(self, root, folder, jobs):
        self.free, self.running, self.lock = [], set(), threading.Lock()
        self.stopped = False
        for number in range(jobs):
            copy = Path(folder) / str(number)
            shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*IGNORED))
            self.free.append(copy)

    def time_limit(self, tests):
        """Seconds that tests may take: by how long they take without a mutant, and pass."""
        start = time.monotonic()
        outcome, told = self.run(None, tests, None)
        if outcome != "lived":
            raise SystemExit(f"{' '.join(tests)} fail without any mutant: {outcome} {told}")
        return max(AT_LEAST, PATIENCE * (time.monotonic() - start))

    def run(self, mutant, tests, limit):
        """What became of a mutant, and the test that killed it."""
        with self.lock:
            copy = self.free.pop()
        path = None if mutant is None else copy / mutant.file
        original = None if path is None else path.read_text("utf-8")
        try:
            if path is not None:
                path.write_text(mutant.text, "utf-8")
            return self._pytest(copy, tests, limit)
        finally:
            if path is not None:
                path.write_text(original, "utf-8")
            with self.lock:
                self.free.append(copy)

    def _pytest(self, copy, tests, limit):
        # files of bytecode are told apart by whole seconds and size, which a mutant may share
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        with self.lock:
            if self.stopped:
                return "stopped", ""
            process = subprocess.Popen(
                command, cwd=copy, env=environment, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True,
            )
            self.running.add(process)
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            _end(process)
            process.communicate()
            return "killed", "time limit"
        finally:
            with self.lock:
                self.running.discard(process)
        # 0 is all passed, 1 a failure, 2 an error while tests were read, 3 one of pytest itself, as
        # where conftest calls what is broken, 5 nothing found
        if process.returncode == 0:
            return "lived", ""
        if process.returncode not in (1, 2, 3):
            return "error", output[-2000:]
        failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        told = failed[0].split(" - ")[0] if failed else output[-2000:]
        return "killed", told

    def stop(self):
        with self.lock:
            self.stopped = True
            for process in self.running:
                _end(process)


def _end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def tried(root, mutants, jobs, shown=print):
    """Try all mutants: a list of (mutant, outcome, what told)."""
    results = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        bench = Bench(root, folder, jobs)
        chosen = {m: m.tests or tests_of(m.file, root) for m in mutants}
        try:
            with ThreadPoolExecutor(jobs) as threads:
                limits = dict.fromkeys(sorted(set(chosen.values())))
                for tests in limits:
                    limits[tests] = bench.time_limit(tests)
                    shown(f"at most {limits[tests]:.0f} s for {' '.join(tests)}")
                futures = {
                    threads.submit(bench.run, m, tests, limits[tests]): m
                    for m, tests in chosen.items()
                }
                for future in as_completed(futures):
                    mutant, (outcome, told) = futures[future], future.result()
                    results.append((mutant, outcome, told))
                    shown(f"{outcome:7} {mutant.file}:{mutant.line}  {mutant.name}  {told}")
        except BaseException:
            bench.stop()
            raise
    return results


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--number", type=int, default=100, help="mutants at random (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default 1)")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="parts of the names of files or of mutants"
    )
    parser.add_argument("--no-list", action="store_true", help="leave out those of the list")
    parser.add_argument("--jobs", type=int, default=1, help="how many at the same time (default 1)")
    parser.add_argument("--show", action="store_true", help="show them, and try none")
    options = parser.parse_args(arguments)

    # ended by another program, the copies are removed too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    by_hand, equivalent, gone = listed()
    by_hand = [m for m in by_hand if any(x in f"{m.file} {m.name}" for x in options.only)]
    every = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "ppm").rglob("*.py"))
    files = [file for file in every if any(x in file for x in options.only)]
    drawn = at_random(ROOT, files, options.number, options.seed, known=equivalent)
    mutants = [*(() if options.no_list else by_hand), *drawn]
    for name, why in gone:
        print(f"not tried: {name}, because {why}")
    if options.show:
        print(*mutants, sep="\n")
        return 0
    try:
        results = tried(ROOT, mutants, options.jobs, lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        print("interrupted; nothing is left behind", file=sys.stderr)
        return 130
    alive = [mutant for mutant, outcome, _ in results if outcome != "killed"]
    print("\nThese live:" if alive else "\nNone lives.")
    for mutant in alive:
        print(mutant)
    for name, part in (("list", set(by_hand)), ("at random", set(drawn))):
        dead = sum(m in part and outcome == "killed" for m, outcome, _ in results)
        total = sum(m in part for m, _, _ in results)
        if total:
            print(f"{name}: {dead} of {total} killed ({dead / total:.0%})")
    print(f"known to be equivalent: {len(equivalent)}; of lines that are gone: {len(gone)}")
    return int(any(mutant in by_hand for mutant in alive))


if __name__ == "__main__":
    sys.exit(main())
