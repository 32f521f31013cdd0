"""Rules that need several pods to say something. One module each; rules never import each other."""
