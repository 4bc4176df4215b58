"""Commands that look into what runs: trees, descriptions, events, checks, files."""
