"""The public interface for commands: the decisions, processes and records that they use.

Each name is defined elsewhere in this package. Commands import only `leaderworkerset.api`, `leaderworkerset.install`
and this package, so that other modules can change independently.
"""
