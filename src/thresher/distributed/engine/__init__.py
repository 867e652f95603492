"""What runs on any executor: pieces with a state, their steps, and checkpoints of a run."""
