"""Contains one module for each command. `commandtable.py` lists the commands."""
