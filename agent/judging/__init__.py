"""What detectors share: the case they judge, the verdict they give, and the questions that several of them ask."""
