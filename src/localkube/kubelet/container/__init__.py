"""One container: what it runs, how it is started, probed and stopped, and how commands run in it."""
