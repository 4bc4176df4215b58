"""The commands, one module each; `app.py` has the table of them."""
