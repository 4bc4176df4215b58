"""The kind registry: one value for each kind, from which the manager, the installation and the docs are built."""
