// SPDX-License-Identifier: Apache-2.0
// A minimal Triton backend: for each request, it reads the chunk and the controls of the sequence,
// and answers with the number of chunks of the sequence. A batch takes 2 ms.
//
// Triton's wheel has no headers. The needed declarations are here, as in its documentation
// (tritonbackend.h and tritonserver.h of triton-inference-server/core, API 1.x).
#include <poll.h>

#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

extern "C" {

struct TRITONSERVER_Error;
struct TRITONBACKEND_Input;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_Output;
struct TRITONBACKEND_Request;
struct TRITONBACKEND_Response;

TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name,
                                               TRITONBACKEND_Input** input);
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, uint32_t index,
                                              const void** buffer, uint64_t* bytes,
                                              int* memory_type, int64_t* memory_type_id);
TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request);
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 int datatype, const int64_t* shape,
                                                 uint32_t dimensions);
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               uint64_t bytes, int* memory_type,
                                               int64_t* memory_type_id);
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response, uint32_t flags,
                                               TRITONSERVER_Error* error);
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t flags);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance,
                                                        void* state);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance,
                                                     void** state);
TRITONSERVER_Error* TRITONSERVER_ErrorNew(int code, const char* message);

}  // extern "C"

namespace {

constexpr int kTypeInt32 = 8;
constexpr int kErrorInvalidArg = 3;
constexpr uint32_t kFinalResponse = 1;
constexpr uint32_t kReleaseAll = 1;
constexpr uint64_t kChunkBytes = 3200;
constexpr int kModelMillis = 2;

// Number of chunks of each open sequence.
using Sequences = std::unordered_map<uint64_t, int32_t>;

// The bytes of an input; null if it is absent, has another size, or has more than one piece.
const void* input_of(TRITONBACKEND_Request* request, const char* name, uint64_t bytes) {
  TRITONBACKEND_Input* input = nullptr;
  const void* buffer = nullptr;
  uint64_t size = 0;
  int memory_type = 0;
  int64_t memory_type_id = 0;
  if (TRITONBACKEND_RequestInput(request, name, &input) != nullptr) return nullptr;
  if (TRITONBACKEND_InputBuffer(input, 0, &buffer, &size, &memory_type, &memory_type_id) !=
      nullptr) {
    return nullptr;
  }
  return size == bytes && memory_type <= 1 ? buffer : nullptr;  // 0 CPU, 1 pinned
}

template <typename T>
T value_of(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Counts a request. False if an input is missing or invalid.
bool count(TRITONBACKEND_Request* request, Sequences& sequences, int32_t& chunks) {
  const void* chunk = input_of(request, "INPUT", kChunkBytes);
  const void* start = input_of(request, "START", sizeof(int32_t));
  const void* end = input_of(request, "END", sizeof(int32_t));
  const void* sequence = input_of(request, "CORRID", sizeof(uint64_t));
  if (chunk == nullptr || start == nullptr || end == nullptr || sequence == nullptr) return false;
  const uint64_t id = value_of<uint64_t>(sequence);
  int32_t& so_far = sequences[id];
  if (value_of<int32_t>(start) != 0) so_far = 0;
  chunks = ++so_far;
  if (value_of<int32_t>(end) != 0) sequences.erase(id);
  return true;
}

TRITONSERVER_Error* write(TRITONBACKEND_Response* response, int32_t chunks) {
  const int64_t shape[] = {1, 1};
  TRITONBACKEND_Output* output = nullptr;
  void* buffer = nullptr;
  int memory_type = 0;
  int64_t memory_type_id = 0;
  if (auto* error =
          TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT", kTypeInt32, shape, 2)) {
    return error;
  }
  if (auto* error = TRITONBACKEND_OutputBuffer(output, &buffer, sizeof chunks, &memory_type,
                                               &memory_type_id)) {
    return error;
  }
  std::memcpy(buffer, &chunks, sizeof chunks);
  return nullptr;
}

struct Answer {
  TRITONBACKEND_Response* response;  // null if Triton has no memory for it
  TRITONSERVER_Error* error;
};

Answer answer_to(TRITONBACKEND_Request* request, Sequences& sequences) {
  Answer answer{};
  if (TRITONBACKEND_ResponseNew(&answer.response, request) != nullptr) return {};
  int32_t chunks = 0;
  answer.error = count(request, sequences, chunks)
                     ? write(answer.response, chunks)
                     : TRITONSERVER_ErrorNew(kErrorInvalidArg, "an input is missing or invalid");
  return answer;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(
    TRITONBACKEND_ModelInstance* instance) {
  return TRITONBACKEND_ModelInstanceSetState(instance, new Sequences);
}

[[gnu::visibility("default")]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(
    TRITONBACKEND_ModelInstance* instance) {
  void* state = nullptr;
  auto* error = TRITONBACKEND_ModelInstanceState(instance, &state);
  delete static_cast<Sequences*>(state);
  return error;
}

[[gnu::visibility("default")]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests, uint32_t requested) {
  void* state = nullptr;
  if (auto* error = TRITONBACKEND_ModelInstanceState(instance, &state)) return error;
  // Releases the requests first and answers after the model's time. If an answer overtakes its
  // request, which Triton's stream_infer_handler.cc still uses, Triton 2.51 crashes. See the
  // README.
  std::vector<Answer> answers;
  for (uint32_t i = 0; i < requested; ++i) {
    answers.push_back(answer_to(requests[i], *static_cast<Sequences*>(state)));
    TRITONBACKEND_RequestRelease(requests[i], kReleaseAll);
  }
  ::poll(nullptr, 0, kModelMillis);
  for (const Answer& answer : answers) {
    if (answer.response != nullptr)
      TRITONBACKEND_ResponseSend(answer.response, kFinalResponse, answer.error);
  }
  return nullptr;
}

}  // extern "C"
