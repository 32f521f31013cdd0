"""Small inputs and large ones, and what is asked of the past."""
