"""Groups that run to completion, hang, or are not complete in time (`run-to-completion`, `progress-timeout`)."""
