# Unit programs of engine.
