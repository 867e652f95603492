def build(): pass
