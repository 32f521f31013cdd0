"""What the agent writes for itself, beside the spool: baseline and canary. Never below a state directory."""
