"""Implements policies, with one module and all effects for each field or annotation that affects groups."""
