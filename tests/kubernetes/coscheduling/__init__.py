"""Gang scheduling by the real coscheduling plugin, if its scheduler was built."""
