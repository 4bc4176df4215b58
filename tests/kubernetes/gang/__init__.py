"""Gang schedulers on both clusters."""
