"""Which code answers a path: verbs on objects, discovery, OpenAPI, reviews of the caller."""
