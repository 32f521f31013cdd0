"""The worker's loop: takes hints, walks, keeps the watch alive, the clock and the agent's own ceilings in view."""
