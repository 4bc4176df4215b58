"""The process of a command: what it does not load, when it collects garbage, how it ends."""
