"""Implements the logic of `lws rollout`, which reads and changes objects and predicts the effects. Pure."""
