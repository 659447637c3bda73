"""What is tried, where, how often and when: pure functions and small states whose clock and chance are arguments."""
