"""Provides an API server that stores objects in SQLite.

`frontend/` accepts requests over HTTP and `server.py` responds. `requests/` parses requests. `routing/` selects the verb
(`verbs/`), and serves requests that do not refer to objects. Kinds (`model/`) are built in (`builtin/`) or defined by
users (`custom/`). A write is patched (`patch/`), defaulted (`types/`), validated (`validation/`), admitted
(`admission/`) and stored (`storage/`). `tables/` formats objects as tables for kubectl.
"""
