"""Caches objects that an informer lists once and then watches."""
