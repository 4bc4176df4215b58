"""Commands that show, steer and predict rollouts."""
