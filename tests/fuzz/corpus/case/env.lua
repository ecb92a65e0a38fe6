return { case = function(model, spec) local _ENV <const> = {model = model} x = 1 return {{name = model}} end }
