"""Commands that inspect what runs: trees, descriptions, events, checks, files."""
