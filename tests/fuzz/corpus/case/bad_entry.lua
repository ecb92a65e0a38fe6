return { case = function(model, spec) return {{name = 'a', quantisation_index = {0}}, {class = 1}, {match = {}}, 3} end }
