"""Data and tools for training the reader, a small cross-encoder that scores (question, passage)."""
