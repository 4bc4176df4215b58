"""Updates groups without recreating pods, if possible (`in-place`)."""
