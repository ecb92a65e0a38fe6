return { case = function(model, spec) return {{name = 'a', quantization_index = {0, 1.5, -1, 'x'}}} end }
