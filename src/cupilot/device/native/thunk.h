// Read by the compiler before every candidate. After the candidate, CUPILOT_EXPORT(kernel) makes the compiler
// itself say what each parameter is (constant data the parent reads from the file, without running anything)
// and adds an entry that takes every argument in an 8-byte slot: block coordinates first, then the arguments.
#pragma once

namespace cupilot_abi {

enum Kind : unsigned char { opaque = 0, floating = 1, signed_integer = 2, unsigned_integer = 3, boolean = 4 };

template <class T> inline constexpr Kind kind_of = opaque;
template <> inline constexpr Kind kind_of<float> = floating;
template <> inline constexpr Kind kind_of<double> = floating;
#ifdef __FLT16_MANT_DIG__
template <> inline constexpr Kind kind_of<_Float16> = floating;
#endif
template <> inline constexpr Kind kind_of<bool> = boolean;
template <> inline constexpr Kind kind_of<char> = static_cast<char>(-1) < 0 ? signed_integer : unsigned_integer;
template <> inline constexpr Kind kind_of<signed char> = signed_integer;
template <> inline constexpr Kind kind_of<short> = signed_integer;
template <> inline constexpr Kind kind_of<int> = signed_integer;
template <> inline constexpr Kind kind_of<long> = signed_integer;
template <> inline constexpr Kind kind_of<long long> = signed_integer;
template <> inline constexpr Kind kind_of<unsigned char> = unsigned_integer;
template <> inline constexpr Kind kind_of<unsigned short> = unsigned_integer;
template <> inline constexpr Kind kind_of<unsigned> = unsigned_integer;
template <> inline constexpr Kind kind_of<unsigned long> = unsigned_integer;
template <> inline constexpr Kind kind_of<unsigned long long> = unsigned_integer;

template <class T> inline constexpr unsigned char width_of = sizeof(T) < 255 ? sizeof(T) : 255;
template <> inline constexpr unsigned char width_of<void> = 0;

struct Parameter {
    Kind kind;            // of the value, or of what a pointer points to
    unsigned char width;  // of the same, in bytes
    bool pointer;
    bool read_only;  // a pointer to const
};

template <class T> struct Describe {
    static_assert(sizeof(T) <= 8, "a kernel parameter is a number or a pointer");
    static constexpr Parameter value{kind_of<T>, width_of<T>, false, false};
};
template <class T> struct Describe<T*> { static constexpr Parameter value{kind_of<T>, width_of<T>, true, false}; };
template <class T> struct Describe<const T*> {
    static constexpr Parameter value{kind_of<T>, width_of<T>, true, true};
};
template <class T> struct Describe<T&> {
    static_assert(sizeof(T) == 0, "a kernel parameter is a number or a pointer, not a reference");
    static constexpr Parameter value{};
};

template <unsigned N> struct Parameters {
    unsigned count;
    Parameter each[N ? N : 1];
};

template <auto Kernel> struct Thunk;
template <class... P, void (*Kernel)(P...)> struct Thunk<Kernel> {
    static constexpr Parameters<sizeof...(P)> parameters{sizeof...(P), {Describe<P>::value...}};

    template <class T> static inline T take(const unsigned long long* slot) {
        T value;
        __builtin_memcpy(&value, slot, sizeof value);
        return value;
    }
    template <unsigned long... I> struct Indices {};
    template <unsigned long N, unsigned long... I> struct Count : Count<N - 1, N - 1, I...> {};
    template <unsigned long... I> struct Count<0, I...> { using type = Indices<I...>; };

    template <unsigned long... I> static inline void call(const unsigned long long* slots, Indices<I...>) {
        Kernel(take<P>(slots + I)...);
    }
    static inline void call(const unsigned long long* slots) {
        call(slots, typename Count<sizeof...(P)>::type{});
    }
};

}  // namespace cupilot_abi

#define CUPILOT_EXPORT(name)                                                                                 \
    extern "C" __attribute__((used, visibility("default"), section(".cupilot")))                             \
    constinit const auto cupilot_parameters_##name = cupilot_abi::Thunk<&::name>::parameters;                \
    extern "C" __attribute__((used, visibility("default"))) void cupilot_entry_##name(                       \
        const unsigned long long* slots) {                                                                   \
        cupilot_abi::Thunk<&::name>::call(slots);                                                            \
    }
