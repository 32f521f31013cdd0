"""What events come to: heartbeats, gaps, timelines, sizes, settings, coverage. Nothing is judged here."""
