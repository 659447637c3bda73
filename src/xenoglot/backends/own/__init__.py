"""Models that live in this process: found out what they are, told what is asked, and heard as they speak."""
