"""New groups prefer the nodes of the groups before them (`stay-on-nodes`)."""
