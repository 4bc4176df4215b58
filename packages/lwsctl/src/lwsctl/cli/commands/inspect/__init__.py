"""Commands that inspect running workloads: trees, descriptions, events, checks, files."""
