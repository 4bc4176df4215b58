"""Defines the model of the API server: kinds, their registry, errors and generated names."""
