"""Routes requests: object verbs, discovery, OpenAPI, access reviews."""
