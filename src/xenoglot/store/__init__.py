"""What is kept between requests: answers, conversations, and what a client need not carry itself."""
