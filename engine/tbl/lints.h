/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a target does not fuse or does slowly: LINT(code, RULE, "text").
 *
 * Each row is one warning of a plan, however many layers it is about; the text stands
 * behind their names. It says what happens there, and what to ask for instead.
 * `lint_CODE` of plan/lint.c says of a layer whether it is meant. RULE is the rule of the
 * target that the plan does not follow there. docs/lint.md has more of each.
 */
LINT(conv_transpose_axis, T3,
     "releases of TensorRT disagree on the axis of a ConvTranspose's scales; "
     "\"rules\": {\"T3\": false} gives the weight one scale")
LINT(grouped_conv_transpose, T3,
     "TensorRT has refused a ConvTranspose of several groups in int8; an entry of "
     "layers that names it leaves it in floating point")
LINT(pair_before_activation, T10,
     "the pair stands between a layer and the activation or BatchNormalization "
     "behind it, which are no longer one kernel")
LINT(residual_all_inputs, T11,
     "all inputs of the Add have a pair, so it is not fused with the convolution "
     "that makes one of them; leave that one out of quantization_index")
LINT(pooling_alone, T14,
     "pooling reads int8 and nothing behind it does, so it is converted back at "
     "once; \"rules\": {\"T14\": true} leaves it in floating point")
LINT(concat_scales, T15,
     "the inputs of the Concat have a scale each, so they are scaled anew to be "
     "joined; pairs on the layers behind it do without")
LINT(pair_behind_pad, T16,
     "the pair stands between a Pad and the convolution that it feeds, which keeps "
     "the Pad a kernel of its own")
LINT(norm_or_gelu, T18,
     "this is part of a LayerNormalization or Gelu, whose kernel a pair breaks; "
     "\"rules\": {\"T18\": true} leaves such nodes in floating point")
LINT(int8_into_float, T19,
     "the inputs are int8 and nothing behind it reads int8, so what is saved in "
     "reading is spent on converting; \"rules\": {\"T19\": true} leaves it in "
     "floating point")
LINT(output_layer, T20,
     "it makes an output of the model, which is float, from int8 inputs; "
     "\"rules\": {\"T20\": true} leaves it in floating point")
LINT(small_channels, T22,
     "a Conv of so few channels is seldom faster in int8; \"rules\": {\"T22\": "
     "true} leaves it in floating point")
LINT(small_matmul, T23,
     "a weight with fewer than 16 rows or columns is seldom faster in int8; "
     "\"rules\": {\"T23\": true} leaves it in floating point")
LINT(attention, T24,
     "this part of an attention is slower with pairs; \"rules\": {\"T24\": true} "
     "leaves it in floating point")
LINT(half_quantized, T26,
     "the layer has a pair on its input or on its weight, not on both, so it "
     "computes in floating point")
LINT(gate_in_float, T27,
     "a Mul by a gate, of squeeze and excitation, that has not a pair on both "
     "inputs parts int8 layers; the case efficientnet gives it both")
LINT(swish_into_add, T28,
     "a convolution, its swish and this Add are not fused as a whole: a kernel of "
     "its own adds")
