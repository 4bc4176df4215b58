"""The model of the API server: kinds, their registry, errors and generated names."""
