"""Lets new groups prefer the nodes of the previous groups (`stay-on-nodes`)."""
