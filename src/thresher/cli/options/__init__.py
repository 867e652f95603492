"""Options of the commands. `thresher.cli.commands` holds what the commands do."""
