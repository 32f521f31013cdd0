"""What an audit gives out: tables, page, metrics, answers about restarts."""
