"""Provides the public interface for commands, which exports decisions, processes and records.

Each name is defined elsewhere in this package. Commands import only `leaderworkerset.api`, `leaderworkerset.install`
and this package, so that other modules can change independently.
"""
