"""One thin driver for each kind. It declares watches, observes objects, calls the core, and returns the plan."""
