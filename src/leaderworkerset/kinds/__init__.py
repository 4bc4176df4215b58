"""The registry of kinds: one value for each kind, from which everything else is put together."""
