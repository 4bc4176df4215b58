"""Updates groups without new pods if that is possible (`in-place`)."""
