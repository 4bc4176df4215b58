"""The data that `lws must-gather` collects (R-OP-42): `layout.py` has their paths, `gatherer.py` reads them."""
