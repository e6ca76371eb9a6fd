"""Training of the encoder, which turns text into vectors."""
