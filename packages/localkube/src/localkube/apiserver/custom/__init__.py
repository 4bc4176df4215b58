"""Kinds that CustomResourceDefinitions define."""
