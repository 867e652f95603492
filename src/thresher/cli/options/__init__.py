"""Options of the commands: declared here; `thresher.cli.commands` does the work."""
