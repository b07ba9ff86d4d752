# SPDX-License-Identifier: Apache-2.0
"""Speech in the formats that clients send, made without the service's libraries, except libopus for packets of Opus."""
import array
import ctypes
import math
import operator
import wave

OPUS_APPLICATION_AUDIO = 2049
TAPS = 24  # of a low-pass filter, on each side


def read_wav(path):
    with wave.open(path) as file:
        return array.array("h", file.readframes(file.getnframes()))


def write_wav(path, values, rate, channels=1):
    with wave.open(path, "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(array.array("h", values).tobytes())
    return path


def low_pass(at, cutoff):
    """The impulse response at a distance in frames, windowed by a cosine. `cutoff`: part of the Nyquist frequency."""
    if at == 0:
        return cutoff
    reach = TAPS / cutoff
    return 0 if abs(at) >= reach else math.sin(math.pi * at * cutoff) / (math.pi * at) * math.cos(math.pi * at / reach / 2) ** 2


def clamped(value):
    return max(-32768, min(32767, round(value)))


def upsampled(values, times):
    """The same signal at a multiple of its rate."""
    padded = [0] * TAPS + [*values] + [0] * TAPS
    phases = [[low_pass(phase / times - k, 1) for k in range(-TAPS + 1, TAPS + 1)] for phase in range(times)]
    return [clamped(sum(map(operator.mul, phase, padded[at + 1:at + 1 + 2 * TAPS])))
            for at in range(len(values)) for phase in phases]


def halved(values):
    """The same signal at half its rate, without the upper half of its spectrum."""
    reach = 2 * TAPS
    response = [low_pass(k, 0.5) for k in range(-reach, reach + 1)]
    padded = [0] * reach + [*values] + [0] * reach
    return [clamped(sum(map(operator.mul, response, padded[at:at + 2 * reach + 1])))
            for at in range(0, len(values), 2)]


def mulaw(value):
    """G.711, in whole numbers."""
    magnitude = min(abs(value), 32635) + 132
    exponent = magnitude.bit_length() - 8
    return ~((value < 0) << 7 | exponent << 4 | magnitude >> exponent + 3 & 15) & 255


def opus_packets(values, rate):
    """Packets of 20 ms of one channel."""
    library = ctypes.CDLL("libopus.so.0")
    library.opus_encoder_create.restype = ctypes.c_void_p
    error, frames = ctypes.c_int(), rate // 50
    encoder = ctypes.c_void_p(library.opus_encoder_create(rate, 1, OPUS_APPLICATION_AUDIO, ctypes.byref(error)))
    packet, packets = ctypes.create_string_buffer(1500), []
    for at in range(0, len(values), frames):
        piece = [*values[at:at + frames]]
        length = library.opus_encode(encoder, (ctypes.c_int16 * frames)(*piece, *[0] * (frames - len(piece))), frames,
                                     packet, len(packet))
        assert length > 0, length
        packets.append(packet.raw[:length])
    library.opus_encoder_destroy(encoder)
    return packets


def language_model(sentences):
    """A bigram model of these sentences, in the ARPA format."""
    lines = [f"<s> {sentence} </s>".split() for sentence in sentences]
    words = sorted({word for line in lines for word in line})
    pairs = sorted({pair for line in lines for pair in zip(line, line[1:])})
    followers = {word: sum(one == word for one, _ in pairs) for word in words}
    unigrams = [f"{-math.log10(len(words)):.4f} {word} {-1 if followers[word] else 0:.4f}" for word in words]
    bigrams = [f"{math.log10(0.9 / followers[one]):.4f} {one} {other}" for one, other in pairs]
    return "\n".join(["\\data\\", f"ngram 1={len(words)}", f"ngram 2={len(pairs)}", "", "\\1-grams:", *unigrams, "",
                      "\\2-grams:", *bigrams, "", "\\end\\", ""])
