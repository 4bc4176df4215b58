"""Gang scheduling by the real coscheduling plugin, where its scheduler was built."""
