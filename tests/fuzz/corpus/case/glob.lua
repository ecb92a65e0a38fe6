return { case = function(model, spec) local t = {} for i, l in ipairs(model:matching('c*v?')) do t[i] = {name = l.name} end return t end }
