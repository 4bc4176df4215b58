"""Derives the health of groups and sets from recorded failures and starts, and the verdict from the health. Pure."""
