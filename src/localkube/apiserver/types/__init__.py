"""The Go types and schemas of the built-in kinds, as data, and reading objects through them."""
