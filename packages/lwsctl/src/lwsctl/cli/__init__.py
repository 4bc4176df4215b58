"""The command `lws`: one module per command in `commands/`. The composition root: it may import all, nothing imports it."""
