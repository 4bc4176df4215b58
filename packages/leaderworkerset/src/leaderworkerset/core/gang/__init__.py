"""Gang schedulers: one module for each, with a common type (`provider.py`), and their selection (`gangs.py`)."""
