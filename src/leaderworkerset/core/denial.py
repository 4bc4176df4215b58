"""The word of every admission decision that says no."""


class DeniedError(Exception):
    """The object must not be stored; the text is what the user reads."""
