/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of OpenVINO's C library that are used: FUNCTION(return type, name,
 * arguments). Objects are pointers to types that only the library knows. A function that
 * returns an int returns 0, or a negative status.
 */
FUNCTION(int, ov_get_openvino_version, (struct ov_version *))
FUNCTION(void, ov_version_free, (struct ov_version *))
FUNCTION(const char *, ov_get_error_info, (int))
FUNCTION(const char *, ov_get_last_err_msg, (void))
FUNCTION(void, ov_free, (const char *))
FUNCTION(int, ov_core_create, (void **))
FUNCTION(void, ov_core_free, (void *))
FUNCTION(int, ov_core_get_property, (const void *, const char *, const char *, char **))
FUNCTION(int, ov_core_read_model_from_memory_buffer,
         (const void *, const char *, size_t, const void *, void **))
FUNCTION(int, ov_core_compile_model,
         (const void *, const void *, const char *, size_t, void **, ...))
FUNCTION(void, ov_model_free, (void *))
FUNCTION(int, ov_model_const_input_by_name, (const void *, const char *, void **))
FUNCTION(int, ov_model_inputs_size, (const void *, size_t *))
FUNCTION(int, ov_model_outputs_size, (const void *, size_t *))
FUNCTION(int, ov_port_get_element_type, (const void *, int *))
FUNCTION(int, ov_port_get_any_name, (const void *, char **))
FUNCTION(void, ov_output_const_port_free, (void *))
FUNCTION(int, ov_compiled_model_create_infer_request, (const void *, void **))
FUNCTION(int, ov_compiled_model_get_property, (const void *, const char *, char **))
FUNCTION(int, ov_compiled_model_input_by_name, (const void *, const char *, void **))
FUNCTION(int, ov_compiled_model_input_by_index, (const void *, size_t, void **))
FUNCTION(void, ov_compiled_model_free, (void *))
FUNCTION(int, ov_infer_request_set_tensor, (void *, const char *, const void *))
FUNCTION(int, ov_infer_request_set_input_tensor_by_index,
         (void *, size_t, const void *))
FUNCTION(int, ov_infer_request_get_output_tensor_by_index,
         (const void *, size_t, void **))
FUNCTION(int, ov_infer_request_infer, (void *))
FUNCTION(int, ov_infer_request_get_profiling_info,
         (const void *, struct ov_profiling_list *))
FUNCTION(void, ov_profiling_info_list_free, (struct ov_profiling_list *))
FUNCTION(void, ov_infer_request_free, (void *))
FUNCTION(int, ov_tensor_create_from_host_ptr, (int, struct ov_shape, void *, void **))
FUNCTION(int, ov_tensor_get_element_type, (const void *, int *))
FUNCTION(int, ov_tensor_get_shape, (const void *, struct ov_shape *))
FUNCTION(int, ov_tensor_get_size, (const void *, size_t *))
FUNCTION(int, ov_tensor_data, (const void *, void **))
FUNCTION(void, ov_tensor_free, (void *))
FUNCTION(int, ov_shape_free, (struct ov_shape *))
