"""Objects that show their public settings, and nothing else."""

from ppm.checks import shown


class Brief:
    """An object whose ``repr`` shows, in one line, the public settings that it names, alone."""

    _public = ()

    def __repr__(self):
        def words(value):
            # not its own __repr__: a user's model may show its records there
            if isinstance(value, Brief):
                return Brief.__repr__(value)
            return repr(value) if isinstance(value, dict) else shown(value)

        settings = ", ".join(
            f"{name}={words(getattr(self, name))}" for name in self._public
        )
        return f"{type(self).__name__}({settings})"
