"""The command lws, one file per command. The composition root: it may import all, nothing imports it."""
