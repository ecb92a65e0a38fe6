return { case = function(model, spec) local x <close> = nil local y <const> = 1 goto a ::a:: for i = 1, 3 do local z <close> = {} end end }
