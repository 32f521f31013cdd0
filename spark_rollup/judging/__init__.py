"""What several rules need: their form, and the questions that they ask alike."""
