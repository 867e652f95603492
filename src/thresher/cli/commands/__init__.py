"""The commands: one module for each. `thresher.cli.options` declares their options."""
