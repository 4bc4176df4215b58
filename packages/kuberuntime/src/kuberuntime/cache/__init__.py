"""Informers: caches of objects, filled by a list and kept current by a watch."""
