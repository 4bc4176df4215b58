"""Commands that show, steer and foresee rollouts."""
