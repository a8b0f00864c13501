"""Where the labels of synthetic records come from, on a posterior that is written down."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from ppm.synthesizers.mixture.model import FiniteMixture

PI, CENTRES, SIGMA = np.array([0.9, 0.1, 0.0]), np.array([0.0, 8.0, 40.0]), np.full(3, 0.5)
# the first record sits at the rare component, the second between the two
RESPONSE = np.concatenate([[8.2, 4.1], np.zeros(18)])


@pytest.fixture(scope="module")
def model():
    return FiniteMixture(RESPONSE, np.ones((RESPONSE.size, 1)), components=3)


@pytest.fixture(scope="module")
def fit():
    """Forty draws of one and the same θ."""
    draws = (1, 40)
    posterior = xr.Dataset(
        {
            "pi": (("chain", "draw", "component"), np.broadcast_to(PI, (*draws, 3))),
            "beta": (
                ("chain", "draw", "component", "predictor"),
                np.broadcast_to(CENTRES[:, None], (*draws, 3, 1)),
            ),
            "sigma": (("chain", "draw", "component"), np.broadcast_to(SIGMA, (*draws, 3))),
        }
    )
    return xr.DataTree.from_dict({"posterior": posterior})


def share_near(values, centre):
    return float(np.mean(np.abs(values - centre) < 4 * SIGMA[0]))


def test_an_outlying_record_follows_its_own_value_only_under_conditional_labels(model, fit):
    drawn = {
        labels: model.predict(fit, releases=800, random_seed=1, labels=labels).values
        for labels in ("prior", "conditional")
    }
    # from π the outlying record is like any other; from its full conditional it is always itself
    assert share_near(drawn["prior"][:, 0], 8.0) == pytest.approx(PI[1], abs=0.04)
    assert share_near(drawn["prior"][:, 5], 8.0) == pytest.approx(PI[1], abs=0.04)
    assert share_near(drawn["conditional"][:, 0], 8.0) > 0.99
    assert share_near(drawn["conditional"][:, 5], 8.0) == 0
    # the distance to the confidential value tells the two apart
    assert np.abs(drawn["conditional"][:, 0] - RESPONSE[0]).mean() < 1
    assert np.abs(drawn["prior"][:, 0] - RESPONSE[0]).mean() > 6


def test_conditional_labels_have_the_full_conditional_probabilities(model, fit):
    drawn = model.predict(fit, releases=4_000, random_seed=2, labels="conditional").values
    joint = PI * stats.norm.pdf(RESPONSE[1], CENTRES, SIGMA)
    expected = joint[1] / joint.sum()
    assert 0.2 < expected < 0.9
    spread = np.sqrt(expected * (1 - expected) / 4_000)
    assert abs(share_near(drawn[:, 1], 8.0) - expected) < 4 * spread
    # leaving π out of the conditional would be another distribution
    without = stats.norm.pdf(RESPONSE[1], CENTRES, SIGMA)
    assert abs(share_near(drawn[:, 1], 8.0) - without[1] / without.sum()) > 10 * spread


def test_labels_from_pi_look_at_no_response(fit):
    first, second = (
        FiniteMixture(response, np.ones((RESPONSE.size, 1)), components=3)
        for response in (RESPONSE, RESPONSE[::-1])
    )
    settings = {"releases": 3, "random_seed": 4}
    assert np.array_equal(first.predict(fit, **settings), second.predict(fit, **settings))
    settings["labels"] = "conditional"
    assert not np.array_equal(first.predict(fit, **settings), second.predict(fit, **settings))


@pytest.mark.parametrize("wrong", ["full", None, True])
def test_other_labels_are_refused(model, fit, wrong):
    with pytest.raises(ValueError, match="^labels must be"):
        model.predict(fit, releases=1, labels=wrong)
