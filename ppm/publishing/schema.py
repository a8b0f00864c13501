"""Whether a YAML file has the shape that it must have, told in one line."""

from ppm._validation import needed_for


def first_fault(content, schema):
    """What is wrong with a file's content, as JSON Schema sees it.

    Parameters
    ----------
    content : object
        What the file holds.
    schema : dict
        A JSON Schema. Whatever has a ``pattern`` says in its ``title`` what is asked for.

    Returns
    -------
    str
        Where, and what, in one line; empty text if nothing is wrong.
    """
    with needed_for("a check of the book's files"):
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema).iter_errors(content))
    if error is None:
        return ""
    told = error.message
    if error.validator == "pattern":
        # a regular expression says little to whoever wrote the file
        told = f"{error.instance!r} {error.schema['title']}"
    place = "".join(f"{part}: " for part in error.absolute_path)
    return (place + told).replace("\n", " ")
