"""The logic of `lws rollout`: the objects that its subcommands read and change, and the effects of changes. Pure."""
