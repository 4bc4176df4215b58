"""Policies: one module for each field or annotation that affects groups, with all its effects."""
