"""Tables to numbers: checks, columns and their encoding."""
