return { case = function(model, spec) local t = {}
for k, e in pairs(spec.layers) do t[k] = e end
if spec.mode == 'full' and spec.target and not spec:names(model:layer('conv1')) then return t end end }
