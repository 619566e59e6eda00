// What all kernels share: number types, packets of neighbouring numbers, sums over a warp and a block.
//
// Storage is f32 or bf16, arithmetic always f32 (sums over very many numbers f64). Nothing here or in any
// kernel is added in an order that depends on timing: the same input gives the same bits.
#pragma once

#ifdef SHIKHA_HOST // g++: see host/shim.h
#include "host/shim.h"
#else
#include <cuda_bf16.h>
#include <stdint.h>
#define EXPORT(kernel)
#define COUNT_READ(bytes)
#define COUNT_WRITE(bytes)
#endif

typedef __nv_bfloat16 bf16;

/// Threads of a block, unless the kernel says otherwise.
constexpr uint32_t THREADS = 256;
constexpr uint32_t WARP = 32;
constexpr uint32_t ALL_LANES = 0xffffffffu;

__device__ inline uint32_t lane() { return threadIdx.x % WARP; }
__device__ inline uint32_t warp() { return threadIdx.x / WARP; }

__device__ inline float to_f32(float x) { return x; }
__device__ inline float to_f32(bf16 x) { return __bfloat162float(x); }

/// The nearest number of the type.
template <typename T> __device__ inline T from_f32(float x);
template <> __device__ inline float from_f32<float>(float x) { return x; }
template <> __device__ inline bf16 from_f32<bf16>(float x) { return __float2bfloat16_rn(x); }

/// Numbers of a type that are moved at once: 16 bytes.
template <typename T> constexpr uint32_t WIDE = 16 / sizeof(T);

/// N neighbouring numbers as they are stored.
template <typename T, uint32_t N> struct alignas(N * sizeof(T)) Packet {
    T at[N];
};

/// N neighbouring numbers to compute with.
template <uint32_t N> struct Floats {
    float at[N];
};

/// N neighbouring numbers of global memory, as they are.
template <uint32_t N, typename T> __device__ inline Packet<T, N> fetch(const T *from) {
    COUNT_READ(N * sizeof(T));
    return *reinterpret_cast<const Packet<T, N> *>(from);
}

/// N neighbouring numbers of global memory, in f32.
template <uint32_t N, typename T> __device__ inline Floats<N> load(const T *from) {
    const Packet<T, N> packet = fetch<N>(from);
    Floats<N> x;
#pragma unroll
    for (uint32_t i = 0; i < N; i++) x.at[i] = to_f32(packet.at[i]);
    return x;
}

/// Writes N neighbouring numbers to global memory, each rounded once.
template <uint32_t N, typename T> __device__ inline void store(T *to, const Floats<N> &x) {
    Packet<T, N> packet;
#pragma unroll
    for (uint32_t i = 0; i < N; i++) packet.at[i] = from_f32<T>(x.at[i]);
    COUNT_WRITE(N * sizeof(T));
    *reinterpret_cast<Packet<T, N> *>(to) = packet;
}

/// Writes one number to global memory, turned into its type.
template <typename T, typename X> __device__ inline void put(T *to, X x) {
    COUNT_WRITE(sizeof(T));
    *to = x;
}

/// Whether `count` numbers from `from` on split into packets of N that lie as a packet must.
template <uint32_t N, typename T> __device__ inline bool packs(size_t count, const T *from) {
    return count % N == 0 && reinterpret_cast<uintptr_t>(from) % (N * sizeof(T)) == 0;
}
template <uint32_t N, typename T, typename... More>
__device__ inline bool packs(size_t count, const T *from, const More *...more) {
    return packs<N>(count, from) && packs<N>(count, more...);
}

/// Sum over the lanes of a warp; every lane gets the same bits.
template <typename S> __device__ inline S warp_sum(S x) {
    for (uint32_t step = WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

/// Sum over the threads of a block; every thread gets the same bits. `room`: a number a warp, shared.
template <typename S> __device__ inline S block_sum(S x, S *room) {
    x = warp_sum(x);
    if (lane() == 0) room[warp()] = x;
    __syncthreads();
    S sum = 0;
    for (uint32_t i = 0; i < blockDim.x / WARP; i++) sum += room[i];
    __syncthreads(); // all have read: the room is free again
    return sum;
}

/// The block's shared memory, as much as the launch asks for.
template <typename T> __device__ inline T *shared_memory() {
#ifdef SHIKHA_HOST
    return reinterpret_cast<T *>(shim::shared);
#else
    extern __shared__ uint4 memory[];
    return reinterpret_cast<T *>(memory);
#endif
}
