"""Provides the kind registry. The manager, the installation and the documentation are built from its entries."""
