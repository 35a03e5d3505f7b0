#include "program/storage.h"

#include "base/error.h"

namespace convoy {

DType stored_as(Element element, DType compute) {
    CONVOY_CHECK(is_floating(compute), "computing in {}", name_of(compute));
    switch (element) {
        case Element::Index: return DType::i32;
        case Element::Byte: return DType::u8;
        case Element::Precise: return compute == DType::f64 ? DType::f64 : DType::f32;
        case Element::Real: return compute == DType::tf32 ? DType::f32 : compute;
    }
    return compute;
}

}  // namespace convoy
