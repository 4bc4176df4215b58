"""Gang schedulers: one module each, of one shape (`provider.py`), and the choice between them (`gangs.py`)."""
