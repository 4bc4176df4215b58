"""The commands, with one module each. `commandtable.py` lists them."""
