"""The commands, one module each; `commandtable.py` lists them."""
