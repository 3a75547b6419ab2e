// Read before a candidate's text: lets the compiler itself say what each parameter of a kernel is,
// as constant data in the PTX. One word per parameter: kind, width << 8, pointer << 16, const << 17.
struct __half;
struct __nv_bfloat16;
struct __half2;
struct __nv_bfloat162;
namespace cupilot_abi {
enum : unsigned { kOpaque = 0, kFloat = 1, kSigned = 2, kUnsigned = 3, kBool = 4, kBfloat = 5, kPointer = 1u << 16, kConst = 1u << 17 };
template <class T> struct Size { enum : unsigned { value = sizeof(T) < 255 ? sizeof(T) : 255 }; };
template <class T> struct Kind { enum : unsigned { value = kOpaque | Size<T>::value << 8 }; };
template <class T> struct Kind<T*> { enum : unsigned { value = kPointer | Kind<T>::value }; };
template <class T> struct Kind<const T*> { enum : unsigned { value = kPointer | kConst | Kind<T>::value }; };
template <class T> struct Kind<const T> { enum : unsigned { value = Kind<T>::value }; };
template <class T> struct Kind<volatile T> { enum : unsigned { value = Kind<T>::value }; };
template <class T> struct Kind<const volatile T*> { enum : unsigned { value = kPointer | kConst | Kind<T>::value }; };
#define CUPILOT_KIND(T, kind, width) \
    template <> struct Kind<T> { enum : unsigned { value = (kind) | (width) << 8 }; };
CUPILOT_KIND(void, kOpaque, 0)
CUPILOT_KIND(float, kFloat, 4)
CUPILOT_KIND(double, kFloat, 8)
CUPILOT_KIND(::__half, kFloat, 2)
CUPILOT_KIND(::__nv_bfloat16, kBfloat, 2)
CUPILOT_KIND(bool, kBool, 1)
CUPILOT_KIND(char, kSigned, 1)
CUPILOT_KIND(signed char, kSigned, 1)
CUPILOT_KIND(short, kSigned, 2)
CUPILOT_KIND(int, kSigned, 4)
CUPILOT_KIND(long, kSigned, 8)
CUPILOT_KIND(long long, kSigned, 8)
CUPILOT_KIND(unsigned char, kUnsigned, 1)
CUPILOT_KIND(unsigned short, kUnsigned, 2)
CUPILOT_KIND(unsigned, kUnsigned, 4)
CUPILOT_KIND(unsigned long, kUnsigned, 8)
CUPILOT_KIND(unsigned long long, kUnsigned, 8)
#undef CUPILOT_KIND
// A vector counts as its element: float4* may be handed a tensor of f32.
#define CUPILOT_VECTORS(name, T) \
    template <> struct Kind<name##2> { enum : unsigned { value = Kind<T>::value }; }; \
    template <> struct Kind<name##3> { enum : unsigned { value = Kind<T>::value }; }; \
    template <> struct Kind<name##4> { enum : unsigned { value = Kind<T>::value }; };
CUPILOT_VECTORS(float, float)
CUPILOT_VECTORS(int, int)
CUPILOT_VECTORS(uint, unsigned)
CUPILOT_VECTORS(char, signed char)
CUPILOT_VECTORS(uchar, unsigned char)
CUPILOT_VECTORS(short, short)
#undef CUPILOT_VECTORS
template <> struct Kind<double2> { enum : unsigned { value = Kind<double>::value }; };
template <> struct Kind<::__half2> { enum : unsigned { value = Kind<::__half>::value }; };
template <> struct Kind<::__nv_bfloat162> { enum : unsigned { value = Kind<::__nv_bfloat16>::value }; };
template <unsigned N> struct Words { unsigned word[N + 1]; };
template <class F> struct Kernel;
template <class... P> struct Kernel<void (*)(P...)> {
    __device__ static constexpr Words<sizeof...(P)> describe() { return {{sizeof...(P), Kind<P>::value...}}; }
};
}  // namespace cupilot_abi
