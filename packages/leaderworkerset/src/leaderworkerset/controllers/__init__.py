"""One thin driver per kind: it declares watches, observes, calls the core, and returns the plan to execute."""
