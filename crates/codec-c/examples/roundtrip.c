/* Encodes a tensor with TAH-Quant and decodes it again:
 *
 *     cargo build --release -p thinwire-codec-c
 *     cc -I crates/codec-c/include crates/codec-c/examples/roundtrip.c target/release/libthinwire_codec_c.a \
 *         -lpthread -ldl -lm -o roundtrip && ./roundtrip
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "thinwire_codec.h"

static void check(int status) {
    if (status != THINWIRE_OK) {
        char text[256];
        thinwire_error_message(text, sizeof text);
        fprintf(stderr, "error %d: %s\n", status, text);
        exit(1);
    }
}

int main(void) {
    const thinwire_shape shape = {1, 16, 256};
    const size_t elements = shape.samples * shape.tokens * shape.channels;
    float *x = malloc(elements * sizeof *x), *decoded = malloc(elements * sizeof *decoded);
    for (size_t i = 0; i < elements; i++) x[i] = sinf(0.37f * (float)i) * (i % 100 == 7 ? 50.0f : 1.0f);

    thinwire_codec *codec;
    check(thinwire_codec_new("tah", 1, &codec));
    size_t capacity, bytes;
    check(thinwire_packed_size(codec, shape, THINWIRE_F32, &capacity));
    uint8_t *message = malloc(capacity);
    check(thinwire_encode(codec, shape, THINWIRE_F32, x, message, capacity, &bytes));
    check(thinwire_decode(codec, message, bytes, shape, THINWIRE_F32, decoded));

    double error = 0, signal = 0;
    for (size_t i = 0; i < elements; i++) {
        error += pow(decoded[i] - x[i], 2);
        signal += pow(x[i], 2);
    }
    printf("version %s, format %d\n", thinwire_version(), thinwire_format_version());
    printf("%zu values, %zu bytes, %.3f bits a value\n", elements, bytes, 8.0 * (double)bytes / (double)elements);
    printf("relative squared error %.2e\n", error / signal);

    /* A message that was cut short is refused. */
    int status = thinwire_decode(codec, message, bytes - 1, shape, THINWIRE_F32, decoded);
    char text[256];
    thinwire_error_message(text, sizeof text);
    printf("cut short: error %d, %s\n", status, text);

    thinwire_codec_free(codec);
    free(message);
    free(decoded);
    free(x);
    return error / signal < 1e-2 && status == THINWIRE_DECODE ? 0 : 1;
}
