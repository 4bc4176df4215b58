"""The process of a command: which modules it does not import, when it collects garbage, how it ends."""
