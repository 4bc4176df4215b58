"""The health of groups and sets: recorded failures and starts, and the verdict that is derived from them. Pure."""
