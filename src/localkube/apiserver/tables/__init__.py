"""Objects as rows of a Table, as `kubectl get` asks for them."""
