return { case = function(model, spec) local t = {}
for _, l in ipairs(model:layers()) do
  for _, p in ipairs(l:producers()) do t[#t + 1] = {name = p.name, quantization_index = p.inputs} end
  for _, c in ipairs(l:consumers()) do t[#t + 1] = {name = {c.name, l.name}, quantize_weight = false} end
  local s = l.weight_shape
  if s then t[#t + 1] = {match = l.name .. '*', quantize_input = s[1] > 1} end
  if l.class then t[#t + 1] = {class = l.class} end
end
table.sort(t, function(a, b) return tostring(a.name) < tostring(b.name) end)
return t end }
