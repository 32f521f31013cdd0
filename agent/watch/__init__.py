"""Notifications of the kernel as hints in a mailbox. Says where to look, never what is there."""
