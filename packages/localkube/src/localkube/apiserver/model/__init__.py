"""The model of the API server: kinds, their registry, refusals, generated names."""
