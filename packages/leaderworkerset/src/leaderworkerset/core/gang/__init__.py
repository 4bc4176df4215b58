"""Gang schedulers: one module each, of one type (`provider.py`), and the choice between them (`gangs.py`)."""
