"""Pages as values: a picture in, HTML pieces out. Pure."""
