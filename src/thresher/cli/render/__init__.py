"""Text of the command line: progress, results and errors."""
