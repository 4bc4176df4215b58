"""Groups are moved off nodes under maintenance: which nodes, which pods, which groups now (docs/adr/0023)."""
