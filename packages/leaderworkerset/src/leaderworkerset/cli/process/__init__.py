"""The process of a command: what it does not import, when it collects garbage, how it ends."""
