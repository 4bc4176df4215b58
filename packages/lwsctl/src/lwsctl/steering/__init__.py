"""The logic of `lws rollout`: the objects that its verbs read and change, and the effects of a change. Pure."""
