/* The codecs of Thinwire: tensors to messages and back.
 *
 * Link with libthinwire_codec_c.a and, on Linux, -lpthread -ldl -lm.
 *
 * Functions return THINWIRE_OK or an error code, and then thinwire_error_message says more. No function keeps a pointer
 * it was given. A codec may be used by one thread at a time; any number of codecs may be used at once. Tensors are
 * [samples, tokens, channels], contiguous, channels fastest. */
#ifndef THINWIRE_CODEC_H
#define THINWIRE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thinwire_codec thinwire_codec;

enum thinwire_status {
    THINWIRE_OK = 0,
    /* A null or misaligned pointer, a number format that does not exist, or a text that is not UTF-8. */
    THINWIRE_ARGUMENT = 1,
    /* The codec spec. */
    THINWIRE_SPEC = 2,
    /* The tensor or its shape cannot be encoded, or the buffer is too small. Nothing was written. */
    THINWIRE_ENCODE = 3,
    /* The message is invalid. What the tensor holds then is unspecified, but finite where it was. */
    THINWIRE_DECODE = 4,
    /* A bug in the library. The codec must be freed. */
    THINWIRE_INTERNAL = 5
};

/* Number formats of tensors: float, and the bits of IEEE half precision and bfloat16 as uint16_t. */
enum thinwire_dtype { THINWIRE_F32 = 0, THINWIRE_F16 = 1, THINWIRE_BF16 = 2 };

typedef struct thinwire_shape {
    size_t samples;
    size_t tokens;
    size_t channels;
} thinwire_shape;

/* The library's version, such as "0.1.0". */
const char *thinwire_version(void);

/* The version byte of the messages it writes and reads. */
uint8_t thinwire_format_version(void);

/* Makes a codec from its text, such as "tah" or "fixed:bits=8", that uses up to `threads` threads for a message (0 counts
 * as 1). Free it with thinwire_codec_free. */
int thinwire_codec_new(const char *spec, size_t threads, thinwire_codec **codec);

/* Does nothing for NULL. */
void thinwire_codec_free(thinwire_codec *codec);

/* Bytes that hold any message of a tensor of this shape and format. */
int thinwire_packed_size(const thinwire_codec *codec, thinwire_shape shape, int dtype, size_t *bytes);

/* Encodes `values` to the front of `message`, which has room for `capacity` bytes, and stores the message's length. To the
 * codec aqsgd, which remembers samples, those of every tensor are the same ones, in order. */
int thinwire_encode(thinwire_codec *codec, thinwire_shape shape, int dtype, const void *values, uint8_t *message,
                    size_t capacity, size_t *bytes);

/* Decodes a message of exactly `bytes` bytes into `values`. The format may differ from the sender's. */
int thinwire_decode(thinwire_codec *codec, const uint8_t *message, size_t bytes, thinwire_shape shape, int dtype,
                    void *values);

/* Why the last function of this thread that failed did so: writes at most `capacity` bytes, the last one 0, and returns
 * the text's length without it. */
size_t thinwire_error_message(char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
