"""Evaluation of AQMs by RFC 7928."""
