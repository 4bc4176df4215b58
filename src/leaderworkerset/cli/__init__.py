"""The command `lws`: one file per command in `commands/`. The composition root: it may import all, nothing imports it."""
