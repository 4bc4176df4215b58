"""The forms in which objects come in and go out."""
