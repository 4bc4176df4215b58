"""Groups that are made anew come back to the nodes that they had (`stay-on-nodes`)."""
