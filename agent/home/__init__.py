"""What the agent writes for itself, in its own directory: baseline and canary. Never below a state directory."""
