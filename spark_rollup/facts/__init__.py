"""What Spark thins events to: counts, holds, points, readings. Nothing is judged here."""
