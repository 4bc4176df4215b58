"""The command `lws`, with one module per command in `commands/`. It may import all packages; none imports it."""
