"""What is taken for a model: a synthesizer, or a PyMC model as it is written."""

import sys

from ppm.synthesizers.base import Synthesizer


def as_synthesizer(model, **settings):
    """Return a synthesizer as it is, and a PyMC model as a :class:`ppm.PyMCSynthesizer`.

    Raises
    ------
    TypeError
        If ``model`` is neither, or there are settings and it is no PyMC model.
    """
    # whoever has a PyMC model has imported PyMC: it need not be imported to find out
    pymc = sys.modules.get("pymc")
    if pymc is not None and isinstance(model, pymc.Model):
        from ppm.synthesizers.pymc_model import PyMCSynthesizer

        return PyMCSynthesizer(model, **settings)
    if isinstance(model, type) or not isinstance(model, Synthesizer):
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise TypeError(
            "synthesizer must have records, fit, log_likelihood and predict, as "
            f"ppm.GammaPoisson(counts) has, or be a PyMC model; got {kind}"
        )
    if settings:
        raise TypeError(
            f"{', '.join(settings)}: accepted beside a PyMC model only; give "
            f"{type(model).__name__} its settings where it is made"
        )
    return model
