"""What the agent writes for itself, in a directory of its own: baseline and canary. Never below a state directory."""
