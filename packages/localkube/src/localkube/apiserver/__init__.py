"""The Kubernetes API over SQLite.

`front/` accepts requests over HTTP and `server.py` answers them: `requests/` reads them, `routing/` finds the verb
(`verbs/`) and answers requests that are not about objects. Kinds (`model/`) are built in (`builtin/`) or defined by
users (`custom/`). A write is patched (`patch/`), defaulted (`types/`), validated (`validation/`), admitted
(`admission/`) and stored (`storage/`). `tables/` shows objects as kubectl lists them.
"""
