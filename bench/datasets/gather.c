/* SPDX-License-Identifier: Apache-2.0 */
/* The control of throughput.py: writes one batch, and does nothing else. */
#include <stdint.h>
#include <string.h>

/* rows: where the values of each row are. */
void gather_s16_to_f32(const int16_t* const* rows, int count, int width, float* out) {
  for (int row = 0; row < count; ++row) {
    const int16_t* from = rows[row];
    float* to = out + (long)row * width;
    for (int column = 0; column < width; ++column) to[column] = from[column] * (1.0f / 32768);
  }
}

void gather_s16(const int16_t* const* rows, int count, int width, int16_t* out) {
  for (int row = 0; row < count; ++row) memcpy(out + (long)row * width, rows[row], sizeof(int16_t) * width);
}

void gather_f32(const float* const* rows, int count, int width, float* out) {
  for (int row = 0; row < count; ++row) memcpy(out + (long)row * width, rows[row], sizeof(float) * width);
}
