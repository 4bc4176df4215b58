"""Implements gang schedulers, with one module each, a common type (`provider.py`), and a selection."""
