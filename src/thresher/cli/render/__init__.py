"""What the commands print: progress, results and errors."""
