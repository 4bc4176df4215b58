"""What `lws must-gather` collects of a cluster (R-OP-42): `layout.py` says where, `gatherer.py` asks for it."""
