"""Groups are updated without another pod where that is possible (`in-place`)."""
