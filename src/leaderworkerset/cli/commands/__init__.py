"""The commands, one file each; `app.py` has the table of them."""
