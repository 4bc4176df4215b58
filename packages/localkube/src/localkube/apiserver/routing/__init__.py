"""Routes requests to object verbs, discovery, OpenAPI and access reviews."""
