"""How many threads linear algebra may use."""

import contextlib


def one_thread():
    """Limit linear algebra to one thread, as a context.

    On matrices with a few hundred columns threads gain little, and cost a multiple where they wait
    for a core that something else is using. One thread also keeps the order of sums, and so the
    last digits.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1)
