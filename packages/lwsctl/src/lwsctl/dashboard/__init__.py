"""The dashboard: one page for people, served to one browser on this machine, fed by one shared model."""
