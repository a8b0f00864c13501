"""What commit 8310ad9 wrote: its account goes on, and what cannot is refused in one line."""

import hashlib
import json
import pickle
import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ppm
from ppm.release import Account, Bins, Confidential, Posterior, ReleasePlan

OLDER = Path(__file__).parent / "older"
LAST = pd.DataFrame({"region": [1, 2] * 60, "children": [0, 1, 2, 3, 1, 2] * 20})
NOW = LAST.assign(children=[1, 1, 2, 4, 2, 0] * 20)


def build(records):
    return ppm.GammaPoisson(records["children"], shape=2, rate=1)


def candidates(published):
    return {"mu": published["children"].mean() * np.linspace(0.5, 2.0, 60)}


@pytest.fixture
def account(tmp_path):
    for name in ("account.jsonl", "account.jsonl.last"):
        shutil.copy(OLDER / name, tmp_path)
    return Account(tmp_path / "account.jsonl")


def test_an_account_adds_up_and_goes_on(account):
    assert (account.total, account.budget) == (Decimal("0.6"), 1.0)
    assert account.table == "children of 2024"
    account.enter(0.3, "one more")
    assert Account(account.path).total == Decimal("0.9")
    with pytest.raises(ValueError, match="epsilon must keep .* budget of 1"):
        account.enter(0.2, "too much")
    lines = Path(account.path).read_text("utf-8")
    assert lines.startswith((OLDER / "account.jsonl").read_text("utf-8"))


def test_a_line_that_was_lowered_is_still_found(account):
    path = Path(account.path)
    path.write_text(path.read_text("utf-8").replace('"0.2"', '"0.1"'), "utf-8")
    with pytest.raises(ValueError, match="line 4 is not as it was written"):
        _ = account.total


def test_a_plan_of_bins_is_the_same_and_was_used_already(account):
    with pytest.warns(UserWarning, match="fewer bins than asked for in 1 of 2 groups"):
        plan = ReleasePlan.read(OLDER / "counts.json", LAST)
    assert plan.mechanism == Bins(4, special=[])
    assert account.entries[0]["digest"] == plan.digest
    settings = {"account": account, "secure_noise": False, "random_seed": 1}
    with pytest.raises(ValueError, match="plan must not be released twice"):
        plan.release(Confidential(NOW), **settings)
    plan.release(Confidential(NOW), again=True, **settings)
    assert account.total == Decimal("0.7")


def changed(path, change):
    """The plan with other settings, as another version would have saved it."""
    content = json.loads((OLDER / "counts.json").read_text("utf-8"))
    change(content["plan"])
    made = json.dumps(content["plan"], sort_keys=True).encode()
    content["digest"] = hashlib.sha256(made).hexdigest()
    path.write_text(json.dumps(content), "utf-8")


def test_a_plan_with_other_settings_is_refused_in_one_line(tmp_path):
    with pytest.raises(
        ValueError, match="of this version of ppm; post.*: make"
    ) as told:
        ReleasePlan.read(
            OLDER / "posterior.json", LAST, mechanism=Posterior(build, candidates)
        )
    assert "\n" not in str(told.value)
    path = tmp_path / "plan.json"
    for change in (
        lambda plan: plan.update(more=1),
        lambda plan: plan.pop("rehearsed"),
        lambda plan: plan["mechanism"]["settings"].update(more=1),
        lambda plan: plan["mechanism"].update(kind="Gone"),
    ):
        changed(path, change)
        with pytest.raises(ValueError, match="path must hold a plan of this version"):
            ReleasePlan.read(path, LAST)


class Older:
    """Pickled as the older class of this name."""

    def __init__(self, kind, state):
        self.kind, self.state = kind, state

    def __reduce__(self):
        return object.__new__, (self.kind,), self.state


@pytest.mark.parametrize(
    "module", ["mechanism", "plan.plan", "synthesizers.gamma_poisson", "censoring"]
)
def test_a_pickle_of_a_class_that_is_gone_is_refused_in_one_line(module):
    with pytest.raises(ModuleNotFoundError, match="No module named 'ppm[^\\n]*$"):
        pickle.loads(f"cppm.{module}\nFit\n.".encode())


def test_pickled_terms_are_checked_and_stay_as_they_are():
    state = {"weights": np.ones(3), "limits": None, "levels": None}
    older = pickle.dumps(Older(ppm.Terms, state | {"own": False, "source": "ones"}))
    with pytest.raises(TypeError, match="unexpected keyword argument 'own'$"):
        pickle.loads(older)
    terms = pickle.loads(pickle.dumps(ppm.Terms([1.0, 0.5], ppm.Limits(-1, 0))))
    assert terms.width == 1.0 and terms.weights.tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        terms.weights[0] = 0.0
