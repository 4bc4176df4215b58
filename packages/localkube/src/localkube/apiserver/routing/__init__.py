"""Routes paths to code: verbs on objects, discovery, OpenAPI, reviews of the caller."""
