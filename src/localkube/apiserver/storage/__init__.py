"""Where objects are kept, at every remembered revision, and how changes of them become known."""
