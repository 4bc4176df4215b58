"""Pages as functions from a picture to HTML pieces. Pure."""
