return { case = function(model, spec) local a <close = [==[ x ]=] end }
