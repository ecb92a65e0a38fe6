return { case = function(model, spec) local t = {} while true do t[#t + 1] = {t} end end }
