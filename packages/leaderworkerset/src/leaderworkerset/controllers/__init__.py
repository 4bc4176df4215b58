"""A thin driver for each kind, which declares watches, observes objects, calls the core, and returns the plan."""
