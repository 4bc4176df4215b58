"""Commands that show, control and predict rollouts."""
