"""Tables of objects, as `kubectl get` requests them."""
