"""One thin driver per kind: what to watch, how to observe, call the core, execute."""
