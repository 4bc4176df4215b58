"""The error of every admission decision that refuses an object."""


class DeniedError(Exception):
    """The object must not be stored; the text is shown to the user."""
