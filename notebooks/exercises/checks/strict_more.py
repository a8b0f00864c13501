"""Exercises of the chapter on what a strict release costs: several releases, and chains."""

from types import SimpleNamespace

import numpy as np

import ppm
from checks import exercise


def given():
    """Releases of a censored posterior, and how far its chain may be off."""
    return SimpleNamespace(width=0.5, releases=40, delta=1e-6, epsilon=1.5, tau=1e-4)


@exercise("one ε, in nats")
def bounded_range(g):
    def spent(rho, log=np.log):
        return rho + 2 * np.sqrt(rho * log(1 / g.delta))

    rho = g.releases * g.width**2 / 8
    return (
        ppm.pdp.bounded_range_epsilon(g.width, g.releases, delta=g.delta),
        {
            "This is the cost without an exception. What does δ buy?": g.releases
            * g.width,
            "How does ρ depend on the width?": spent(g.releases * g.width / 8),
            "This is the formula for a loss of which only the absolute value is limited. Bounded "
            "range is more: look at the divisor.": spent(g.releases * g.width**2 / 2),
            "Nats are natural logarithms.": spent(rho, np.log10),
            "Nats are natural logarithms, and bits have the base 2.": spent(
                rho, np.log2
            ),
            "One term of the sum is missing.": spent(rho) - rho,
        },
        "See the corollary on bounded range.",
    )


@exercise("one δ")
def chain(g):
    return (
        (1 + np.exp(g.epsilon)) * g.tau,
        {
            "The other database has draws that are not exact, too.": g.tau,
            "The two distances do not count alike: one of them is multiplied by a factor.": 2
            * g.tau,
            "This is the distance of one of the two databases.": np.exp(g.epsilon)
            * g.tau,
            "The factor of ε-differential privacy is not ε itself.": (1 + g.epsilon)
            * g.tau,
        },
        "See the proposition on draws that are not exact.",
    )
