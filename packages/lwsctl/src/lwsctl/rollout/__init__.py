"""The logic of `lws rollout`: which objects its subcommands read and change, and what a change does. Pure."""
