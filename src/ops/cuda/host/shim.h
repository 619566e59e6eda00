// Runs the kernels on the CPU, so that their own source is tested where there is no GPU.
//
// Every thread of a block is a fibre that runs until it must wait: at a barrier of the block or of its warp.
// A warp runs as far as it can before the next one begins, so a warp is always as far ahead of the others as
// the barriers allow, and a barrier that is missing shows in the result. The order in which threads (and blocks)
// take their turn is the caller's; results must not depend on it. Shared memory starts as NaN, has exactly
// the size that the launch asks for, and is watched beyond its end. A barrier that not all threads reach
// is an error.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <utility>

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __noinline__ __attribute__((noinline))

struct Index {
    uint32_t x, y, z;
};
Index threadIdx, blockIdx, blockDim, gridDim; // not static: the compiler must expect them to change at a barrier

struct alignas(2) __nv_bfloat16 {
    uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 x) {
    const uint32_t bits = uint32_t(x.bits) << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
/// Rounds to nearest, ties to even.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    if (x != x) return {0x7fff};
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

namespace shim {

constexpr uint32_t MOST = 256;            // threads of a block
constexpr size_t STACK = 64 << 10;        // bytes of a fibre's stack
constexpr size_t GUARD = 4096;            // bytes watched behind the shared memory
constexpr size_t SLOT = 128;              // bytes a lane can show the others at a time
enum class State { Ready, AtBlock, AtWarp, Done };

struct Fibre {
    jmp_buf here;
    State state;
    int line;          // of the barrier it waits at
    uint32_t exchange; // exchanges with its warp so far
};

inline Fibre fibres[MOST];
inline uint32_t made, current;
inline jmp_buf scheduler;
inline unsigned char lanes[2][MOST][SLOT];
inline unsigned char *shared;
inline void (*entry)(void **);
inline void **arguments;
inline uint64_t bytes_read, bytes_written;
inline char message[256];

inline void leave(State state, int line) {
    Fibre &me = fibres[current];
    me.state = state;
    me.line = line;
    if (_setjmp(me.here) == 0) _longjmp(scheduler, 1);
}

/// A fibre lives for all blocks: it runs the kernel whenever it is made ready.
inline void live() {
    for (;;) {
        leave(State::Done, 0);
        entry(arguments);
    }
}

inline void make(uint32_t count) {
    for (; made < count; made++) {
        ucontext_t start, back;
        getcontext(&start);
        start.uc_stack.ss_sp = malloc(STACK);
        start.uc_stack.ss_size = STACK;
        start.uc_link = nullptr;
        makecontext(&start, live, 0);
        current = made;
        if (_setjmp(scheduler) == 0) swapcontext(&back, &start);
    }
}

/// What each lane of the warp shows: `bytes` of every lane, SLOT apart. Two buffers take turns, so that a
/// lane that is one exchange ahead does not overwrite what another still reads.
inline const unsigned char *exchange(const void *mine, size_t bytes, int line) {
    const uint32_t me = current, turn = fibres[me].exchange++ % 2;
    memcpy(lanes[turn][me], mine, bytes);
    leave(State::AtWarp, line);
    return lanes[turn][me / 32 * 32];
}

template <typename S> S shuffle(S x, uint32_t from, int line) {
    S other;
    memcpy(&other, exchange(&x, sizeof x, line) + from % 32 * SLOT, sizeof x);
    return other;
}

/// Whether these threads all wait at one barrier of this kind; it is opened then.
inline bool open(uint32_t first, uint32_t count, State kind) {
    for (uint32_t i = first; i < first + count; i++) {
        if (fibres[i].state != kind || fibres[i].line != fibres[first].line) return false;
    }
    for (uint32_t i = first; i < first + count; i++) fibres[i].state = State::Ready;
    return true;
}

inline bool finished(uint32_t threads) {
    for (uint32_t i = 0; i < threads; i++) {
        if (fibres[i].state != State::Done) return false;
    }
    return true;
}

/// The `i`-th of `count` in one of the orders: 0 forwards, 1 backwards, else shuffled by that seed.
inline uint32_t nth(uint32_t i, uint32_t count, uint32_t order) {
    if (order < 2) return order == 0 ? i : count - 1 - i;
    uint32_t stride = (order * 2654435761u) % count | 1;
    for (;; stride += 2) { // a stride that has no factor in common with the count visits everyone once
        uint32_t a = stride, b = count;
        while (b != 0) {
            const uint32_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) return uint32_t((uint64_t(i) * stride + order) % count);
    }
}

/// Runs a warp until it waits for other warps or is done.
inline void run_warp(uint32_t first, uint32_t order) {
    do {
        for (uint32_t i = 0; i < 32; i++) {
            const uint32_t thread = first + nth(i, 32, order);
            if (fibres[thread].state != State::Ready) continue;
            threadIdx.x = current = thread;
            if (_setjmp(scheduler) == 0) _longjmp(fibres[thread].here, 1);
        }
    } while (open(first, 32, State::AtWarp));
}

inline bool run_block(uint32_t threads, uint32_t order) {
    for (uint32_t i = 0; i < threads; i++) {
        fibres[i].state = State::Ready;
        fibres[i].exchange = 0;
    }
    do {
        for (uint32_t i = 0; i < threads / 32; i++) run_warp(nth(i, threads / 32, order) * 32, order);
    } while (open(0, threads, State::AtBlock));
    return finished(threads);
}

/// Runs a kernel on every block; false, with a message, when it does what no kernel may.
inline bool run(uint32_t blocks, uint32_t threads, uint32_t bytes, uint32_t order) {
    if (threads > MOST || threads % 32 != 0 || threads == 0) {
        snprintf(message, sizeof message, "%u threads a block, expected a multiple of 32 up to %u", threads, MOST);
        return false;
    }
    make(threads);
    blockDim = {threads, 1, 1};
    gridDim = {blocks, 1, 1};
    shared = static_cast<unsigned char *>(aligned_alloc(16, (bytes + 15) / 16 * 16 + GUARD));
    bool right = true;
    for (uint32_t i = 0; right && i < blocks; i++) {
        memset(shared, 0xff, bytes);
        memset(shared + bytes, 0xa5, GUARD);
        blockIdx = {nth(i, blocks, order), 0, 0};
        if (!run_block(threads, order)) {
            snprintf(message, sizeof message, "block %u: not all threads reach one barrier", blockIdx.x);
            right = false;
        }
        for (size_t at = bytes; right && at < bytes + GUARD; at++) {
            if (shared[at] == 0xa5) continue;
            snprintf(message, sizeof message, "block %u writes beyond its %u bytes of shared memory", blockIdx.x, bytes);
            right = false;
        }
    }
    free(shared);
    return right;
}

/// Calls a kernel with the arguments as a launch has them: a pointer to each.
template <typename... A, size_t... I>
void call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
    kernel(*static_cast<A *>(arguments[I])...);
}
template <typename... A> void apply(void (*kernel)(A...), void **arguments) {
    call(kernel, arguments, std::index_sequence_for<A...>());
}

} // namespace shim

#define __syncthreads() shim::leave(shim::State::AtBlock, __LINE__)
#define __syncwarp() shim::leave(shim::State::AtWarp, __LINE__)
#define __shfl_xor_sync(mask, x, step) shim::shuffle(x, shim::current ^ (step), __LINE__)
#define __shfl_sync(mask, x, from) shim::shuffle(x, from, __LINE__)
#define COUNT_READ(bytes) shim::bytes_read += (bytes)
#define COUNT_WRITE(bytes) shim::bytes_written += (bytes)
/// Lets `shim_launch` find a kernel by its name.
#define EXPORT(kernel)                                                                                                 \
    extern "C" void call_##kernel(void **arguments) { shim::apply(kernel, arguments); }

extern "C" const char *shim_message() { return shim::message; }
extern "C" void shim_traffic(uint64_t *read, uint64_t *written) {
    *read = shim::bytes_read;
    *written = shim::bytes_written;
}
extern "C" int shim_launch(void (*kernel)(void **), uint32_t blocks, uint32_t threads, uint32_t shared, void **arguments,
                           uint32_t order) {
    shim::entry = kernel;
    shim::arguments = arguments;
    shim::bytes_read = shim::bytes_written = 0;
    return shim::run(blocks, threads, shared, order);
}
