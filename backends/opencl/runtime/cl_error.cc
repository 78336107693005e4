#include "backends/opencl/runtime/cl_error.h"

namespace hlorun::opencl {
namespace {

struct StatusRow {
  cl_int status;
  const char* name;
  ErrorCode code;
};

#define STATUS(name, code) \
  { name, #name, ErrorCode::code }
constexpr StatusRow kStatuses[] = {
    STATUS(CL_DEVICE_NOT_FOUND, kNotFound),
    STATUS(CL_DEVICE_NOT_AVAILABLE, kFailedPrecondition),
    STATUS(CL_COMPILER_NOT_AVAILABLE, kFailedPrecondition),
    STATUS(CL_MEM_OBJECT_ALLOCATION_FAILURE, kResourceExhausted),
    STATUS(CL_OUT_OF_RESOURCES, kResourceExhausted),
    STATUS(CL_OUT_OF_HOST_MEMORY, kResourceExhausted),
    STATUS(CL_MEM_COPY_OVERLAP, kInternal),
    STATUS(CL_BUILD_PROGRAM_FAILURE, kInternal),
    STATUS(CL_MISALIGNED_SUB_BUFFER_OFFSET, kInternal),
    STATUS(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, kInternal),
    STATUS(CL_COMPILE_PROGRAM_FAILURE, kInternal),
    STATUS(CL_INVALID_VALUE, kInternal),
    STATUS(CL_INVALID_DEVICE_TYPE, kInternal),
    STATUS(CL_INVALID_PLATFORM, kInternal),
    STATUS(CL_INVALID_DEVICE, kInternal),
    STATUS(CL_INVALID_CONTEXT, kInternal),
    STATUS(CL_INVALID_QUEUE_PROPERTIES, kInternal),
    STATUS(CL_INVALID_COMMAND_QUEUE, kInternal),
    STATUS(CL_INVALID_HOST_PTR, kInternal),
    STATUS(CL_INVALID_MEM_OBJECT, kInternal),
    STATUS(CL_INVALID_BINARY, kDataLoss),
    STATUS(CL_INVALID_BUILD_OPTIONS, kInternal),
    STATUS(CL_INVALID_PROGRAM, kInternal),
    STATUS(CL_INVALID_PROGRAM_EXECUTABLE, kInternal),
    STATUS(CL_INVALID_KERNEL_NAME, kInternal),
    STATUS(CL_INVALID_KERNEL_DEFINITION, kInternal),
    STATUS(CL_INVALID_KERNEL, kInternal),
    STATUS(CL_INVALID_ARG_INDEX, kInternal),
    STATUS(CL_INVALID_ARG_VALUE, kInternal),
    STATUS(CL_INVALID_ARG_SIZE, kInternal),
    STATUS(CL_INVALID_KERNEL_ARGS, kInternal),
    STATUS(CL_INVALID_WORK_DIMENSION, kInternal),
    STATUS(CL_INVALID_WORK_GROUP_SIZE, kInternal),
    STATUS(CL_INVALID_WORK_ITEM_SIZE, kInternal),
    STATUS(CL_INVALID_GLOBAL_OFFSET, kInternal),
    STATUS(CL_INVALID_EVENT_WAIT_LIST, kInternal),
    STATUS(CL_INVALID_EVENT, kInternal),
    STATUS(CL_INVALID_OPERATION, kInternal),
    STATUS(CL_INVALID_BUFFER_SIZE, kResourceExhausted),
    STATUS(CL_INVALID_GLOBAL_WORK_SIZE, kInternal),
    STATUS(CL_INVALID_PROPERTY, kInternal),
};
#undef STATUS

const StatusRow* Find(cl_int status) {
  for (const StatusRow& row : kStatuses) {
    if (row.status == status) return &row;
  }
  return nullptr;
}

}  // namespace

const char* StatusName(cl_int status) {
  const StatusRow* row = Find(status);
  return row != nullptr ? row->name : "unknown OpenCL status";
}

void FailCl(cl_int status, const std::string& doing) {
  const StatusRow* row = Find(status);
  Fail(row != nullptr ? row->code : ErrorCode::kInternal, "{}: OpenCL reports {} ({})", doing, StatusName(status),
       status);
}

}  // namespace hlorun::opencl
