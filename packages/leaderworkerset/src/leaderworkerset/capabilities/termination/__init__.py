"""The workers of a group end together with their leader (`podTerminationPolicy`)."""
