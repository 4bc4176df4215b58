"""The health of groups and sets: what a view remembers, and the one verdict made from it. Pure."""
