"""List, watch and keep: informers and their caches."""
