"""Groups are updated without new pods if that is possible (`in-place`)."""
