/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The advice about each warning: ADVICE(code, "one or two sentences"). A code without a row
 * asks for nothing that its own detail does not say.
 */
ADVICE("target_format",
       "Choose another format of activations, or another inference engine.")
ADVICE(
    "residual_without_case",
    "Add the case residual to cases, or switch rule T11 on: one input of the Add then "
    "stays without a pair and the Add is fused with the convolution before it.")
ADVICE("conv_transpose_axis", "If the target refuses the layer, switch rule T3 off: "
                              "such weights then get one scale.")
ADVICE("grouped_conv_transpose",
       "Leave the layer in float with an entry of layers that has its name.")
ADVICE("pair_before_activation", "Ask for the pair on the layer behind the activation.")
ADVICE(
    "residual_all_inputs",
    "Leave the convolution's input out of quantization_index, or let the case residual "
    "decide.")
ADVICE("pooling_alone", "Switch rule T14 on to leave such layers alone.")
ADVICE("concat_scales", "Leave the Concat without pairs, or give its inputs one range "
                        "in calibration.ranges.")
ADVICE("pair_behind_pad",
       "Fold the padding into the convolution's pads with an ONNX simplifier.")
ADVICE("pair_behind_maximum",
       "Leave the layer in float: take its entry out of layers, and "
       "leave rule V12 on.")
ADVICE("pair_behind_pool",
       "Leave the layer in float: take its entry out of layers, and "
       "leave rule V13 on.")
ADVICE("norm_or_gelu", "Switch rule T18 on, or export the operator as one node.")
ADVICE("int8_into_float", "Switch rule T19 on to leave such layers alone.")
ADVICE("output_layer", "Switch rule T20 on to leave such layers alone.")
ADVICE("small_channels", "Switch rule T22 on to leave such layers alone.")
ADVICE("small_matmul", "Switch rule T23 on to leave such layers alone.")
ADVICE("attention", "Switch rule T24 on to leave such nodes alone.")
ADVICE("one_place", "Switch rule T34 on to leave such layers alone.")
ADVICE("half_quantized",
       "Give the layer a pair on both its input and its weight, or on neither.")
ADVICE("gate_in_float", "Add the case efficientnet to cases.")
ADVICE("misread_by_target",
       "Follow the detail, or run the model with another inference engine.")
ADVICE("nothing_to_quantize",
       "Look at the reasons of the layers: what was switched off, and by "
       "which entry of the spec?")
ADVICE("integer_weights", "Quantize the float model that this one was made of.")
ADVICE("opset_kept", "Export the model with the later opset.")
ADVICE(
    "run_as_older_opset",
    "Nothing, where what loads the result takes its opset; else export the model with "
    "an older one.")
ADVICE("opset_per_tensor",
       "Export the model with opset 13 or later for scales per channel, or "
       "ask for it with opset.")
ADVICE("opset_float16",
       "Export the model with opset 19 or later, or ask for it with opset.")
ADVICE("not_observed",
       "Add samples that take the other branch, or in which the input has "
       "elements.")
ADVICE("dead_tensor",
       "Add samples for which the tensor is not zero, or leave its layer in float.")
ADVICE("random_samples", "Calibrate with real samples before the figures are believed.")
ADVICE("sample_skipped", "Repair the samples, or leave them out of the dataset.")
ADVICE("nothing_equalized", "Leave equalize out of the spec.")
ADVICE("nothing_smoothed",
       "Leave smooth out of the spec, or let smooth.insert add a Mul where that pays.")
ADVICE(
    "search_goal_missed",
    "Raise the bound on the layers left in float, or try another method, equalize or "
    "weights.rounding first.")
ADVICE("unmatched", "Compare the name in the spec with the names of the layers.")
ADVICE("evaluation_skipped",
       "The accuracy is not known: test the model on your own data.")
ADVICE("deployed_not_measured", "Test the model in the runtime that will run it.")
ADVICE("outputs_not_judged",
       "Compare what becomes of these outputs on your own data; end the model in front "
       "of the node that selects.")
ADVICE("deploy_float",
       "Deploy the float model, unless the size of the file or exactness decides.")
ADVICE("rounded_to_nearest",
       "Nothing, if the verdict is good; else give the layer another weights.dtype, or "
       "leave it in float. The detail says what rounding lacks.")
ADVICE(
    "biases_made",
    "Nothing: the target computes them at no cost. Set bias_correction to \"existing\" "
    "to leave these layers as they are.")
ADVICE(
    "bias_uncorrected",
    "Nothing, if the verdict is good; else leave the layer in float. The detail says "
    "what its bias lacks.")
ADVICE("moment_in_blocks",
       "Nothing: it costs a part of a decibel, and the exact way much memory and time.")
ADVICE("much_memory",
       "Nothing, if the machine has it; else choose the rounding nearest.")
ADVICE("device_fallback", "Check the GPU and its driver on the host.")
ADVICE("layers_folded", "Nothing: it is what rule C17, V5 or P1 asks for.")
ADVICE("weights_computed", "Nothing: it is what rule P1 asks for.")
ADVICE("layers_unfused", "Nothing: it is what rule P1 asks for.")
ADVICE("weights_in_attention",
       "Quantize the model as it was before ONNX Runtime's optimizer.")
ADVICE("weight_stored_twice",
       "Nothing, if time matters more than bytes; else leave the layers in float.")
ADVICE("slice_lost", "Leave the operator that joins the slices in float, let a recipe "
                     "do it, or look for "
                     "the layer of that head whose SQNR falls.")
ADVICE("few_samples", "Send at least 16 samples, better 64 or more.")
ADVICE("evaluated_on_calibration", "Set calibration.max_samples to three quarters of "
                                   "the samples, so that others judge, "
                                   "or send more.")
ADVICE("profile_skipped", "Measure in the runtime that will run the model.")
ADVICE(
    "poor",
    "Add the members that the detail ends with to the spec, or leave out of integers "
    "what it names.")
ADVICE(
    "slower_than_float",
    "Set target to the runtime that runs the model, and leave the operators that got "
    "slower in float.")
ADVICE("weight_dequantized",
       "Leave the weights of these layers in float where time matters more than size.")
ADVICE("opset_raised", "Nothing: it is what opset asks for.")
