/* The kernel as a function of XLA's foreign-function interface. */
#include <string.h>

#include "ctc.h"
#include "xla/ffi/api/c_api.h"

enum { SCORES, LABELS, INPUT_LENGTHS, LABEL_LENGTHS, ARGUMENTS };

static XLA_FFI_Error *error(const XLA_FFI_CallFrame *call, XLA_FFI_Error_Code code, const char *message) {
  XLA_FFI_Error_Create_Args args = {sizeof args, 0, message, code};
  return call->api->XLA_FFI_Error_Create(&args);
}

static const XLA_FFI_Buffer *argument(const XLA_FFI_CallFrame *call, int64_t index) { return call->args.args[index]; }

static int32_t attribute(const XLA_FFI_CallFrame *call, const char *name) {
  for (int64_t i = 0; i < call->attrs.size; i++) {
    const XLA_FFI_ByteSpan *span = call->attrs.names[i];
    if (span->len == strlen(name) && !memcmp(span->ptr, name, span->len))
      return *(const int32_t *)((const XLA_FFI_Scalar *)call->attrs.attrs[i])->value;
  }
  return 0;
}

/* (scores, labels, input_lengths, label_lengths) -> loss, or -> (loss, result). */
XLA_FFI_Error *stablegrad_ctc_xla(XLA_FFI_CallFrame *call) {
  if (call->extension_start && call->extension_start->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)call->extension_start)->metadata;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = XLA_FFI_API_MINOR;
    return 0;
  }
  if (call->stage != XLA_FFI_ExecutionStage_EXECUTE) return 0;
  if (call->args.size != ARGUMENTS || call->rets.size < 1 || call->rets.size > 2)
    return error(call, XLA_FFI_Error_Code_INVALID_ARGUMENT, "stablegrad_ctc: wrong number of arguments or results");
  const XLA_FFI_Buffer *scores = argument(call, SCORES), *labels = argument(call, LABELS);
  const XLA_FFI_Buffer *lengths = argument(call, INPUT_LENGTHS), *label_lengths = argument(call, LABEL_LENGTHS);
  if (scores->dtype != XLA_FFI_DataType_F32 || labels->dtype != XLA_FFI_DataType_S32 ||
      lengths->dtype != XLA_FFI_DataType_S32 || label_lengths->dtype != XLA_FFI_DataType_S32 || scores->rank < 2 ||
      labels->rank != scores->rank - 1 || lengths->rank != scores->rank - 2 || label_lengths->rank != lengths->rank)
    return error(call, XLA_FFI_Error_Code_INVALID_ARGUMENT, "stablegrad_ctc: wrong types or ranks");
  int64_t rows = 1;
  for (int64_t i = 0; i < lengths->rank; i++) rows *= lengths->dims[i];
  const int64_t frames = scores->dims[scores->rank - 2], classes = scores->dims[scores->rank - 1];
  const XLA_FFI_Buffer *loss = call->rets.rets[0];
  const XLA_FFI_Buffer *result = call->rets.size > 1 ? call->rets.rets[1] : 0;
  const ctc_problem problem = {
      .scores = scores->data,
      .labels = labels->data,
      .input_lengths = lengths->data,
      .label_lengths = label_lengths->data,
      .rows = rows,
      .frames = frames,
      .classes = classes,
      .count = labels->dims[labels->rank - 1],
      .row_stride = frames * classes,
      .frame_stride = classes,
      .blank = attribute(call, "blank"),
      .are_logits = attribute(call, "are_logits"),
      .loss = loss->data,
      .result = result ? result->data : 0,
      .posteriors = attribute(call, "posteriors"),
  };
  if (ctc_compute(&problem, 0))
    return error(call, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "stablegrad_ctc: no memory for the workspace");
  return 0;
}
