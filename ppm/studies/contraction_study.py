"""What studies of counts check."""

from ppm._validation import check_count, shown

LARGEST_MEAN = 1e9


def check_sizes(sizes):
    try:
        sizes = tuple(check_count("sizes", n, at_least=2) for n in sizes)
    except TypeError:
        raise ValueError(
            f"sizes must be a list of sample sizes, such as [100, 400]; got {shown(sizes)}"
        ) from None
    if not sizes:
        raise ValueError("sizes must name at least one sample size; got an empty list")
    if any(a >= b for a, b in zip(sizes, sizes[1:], strict=False)):
        raise ValueError(f"sizes must increase from one to the next; got {shown(sizes)}")
    return sizes
