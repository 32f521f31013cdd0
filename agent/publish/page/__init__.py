"""The agent's own page: one HTML document without scripts, styles or images from elsewhere. Values in, text out."""
