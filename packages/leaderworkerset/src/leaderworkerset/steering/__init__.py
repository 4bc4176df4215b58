"""The logic of `lws rollout`: what its verbs read and change, and the effects of a change. Pure."""
