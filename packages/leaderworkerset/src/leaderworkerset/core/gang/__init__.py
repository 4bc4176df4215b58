"""Gang schedulers, with one module each, a common type (`provider.py`), and their selection (`gangs.py`)."""
