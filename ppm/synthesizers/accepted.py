"""What is taken for a model: a synthesizer, or a PyMC model as it is written."""

import inspect
import sys

from ppm.synthesizers.base import Synthesizer

# what the mechanism is set by, whatever the model
_OWN = ("scale", "shift", "truncate_at", "weights", "censor", "fixed_weights")


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

        known = inspect.signature(PyMCSynthesizer).parameters
        unknown = [name for name in settings if name not in known]
        if unknown:
            raise TypeError(
                f"{', '.join(unknown)}: neither a setting of the mechanism ({', '.join(_OWN)}) nor "
                f"of PyMCSynthesizer ({', '.join(list(known)[1:])})"
            )
        return PyMCSynthesizer(model, **settings)
    if isinstance(model, type) or not isinstance(model, Synthesizer):
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise TypeError(
            "synthesizer must have records, fit, log_likelihood and predict, as "
            f"ppm.GammaPoisson(counts) has, or be a PyMC model; got {kind}"
        )
    if settings:
        raise TypeError(
            f"{', '.join(settings)}: no setting of the mechanism ({', '.join(_OWN)}); those of a "
            f"model are accepted beside a PyMC model only, not beside {type(model).__name__}"
        )
    return model
